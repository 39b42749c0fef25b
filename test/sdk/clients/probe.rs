/// What the Rust client does, as one JSON object. It goes behind `main.rs`, whose `main` is called `example` then.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    use std::time::Instant;
    let given = |name: &str| env::var(name).unwrap_or_default();
    let (url, key, troubled) = (given("SLUICE_URL"), given("SLUICE_KEY"), given("TROUBLED_URL"));
    let in_url = |url: &str, key: &str| RpcClient::new(format!("{url}?api-key={key}"));
    let system = solana_system_interface::program::ID;
    let mut seen: Vec<(&str, String)> = Vec::new();

    seen.push(("url_refused", text(in_url(&url, "sluice_secret").get_slot().await)));
    seen.push(("url_unreachable", text(in_url(&given("CLOSED_URL"), "sluice_secret").get_slot().await)));
    seen.push(("header_refused", text(connect(&url, "sluice_secret")?.get_slot().await)));

    let one = connect(&url, &given("ONE_KEY"))?;
    one.get_slot().await?;
    let began = Instant::now();
    seen.push(("limited", text(one.get_slot().await)));
    seen.push(("limited_ms", began.elapsed().as_millis().to_string()));

    let slow = RpcClient::new_with_timeout(
        format!("{troubled}?api-key={}", given("TROUBLED_TRIAL")),
        Duration::from_millis(1_000),
    );
    seen.push(("dripped", text(slow.get_program_accounts(&system).await)));
    if !given("SLUICE_SDK_RUST").is_empty() {
        let began = Instant::now();
        let mute = format!("{troubled}?api-key={}", given("TROUBLED_KEY"));
        seen.push(("default_timeout", text(RpcClient::new(mute).get_cluster_nodes().await)));
        seen.push(("default_timeout_s", began.elapsed().as_secs().to_string()));
    }

    let rpc = connect(&url, &key)?;
    let unknown = Signature::default();
    seen.push(("history", text(rpc.get_signature_statuses_with_history(&[unknown]).await)));
    let height = rpc.get_block_height().await?;
    seen.push(("expired", text(confirm(&rpc, unknown, height).await)));

    let (payer, to) = (Keypair::new(), Keypair::new().pubkey());
    let (blockhash, last_valid) = rpc.get_latest_blockhash_with_commitment(rpc.commitment()).await?;
    let signed = |lamports| {
        let pay = [transfer(&payer.pubkey(), &to, lamports)];
        Transaction::new_signed_with_payer(&pay, Some(&payer.pubkey()), &[&payer], blockhash)
    };
    seen.push(("send_refused", text(send(&rpc, &signed(1)).await)));
    let from_troubled = connect(&troubled, &given("TROUBLED_KEY"))?;
    let sent = send(&from_troubled, &signed(2)).await?;
    seen.push(("send_unknown", (sent == signed(2).signatures[0]).to_string()));
    confirm(&rpc, rpc.request_airdrop(&payer.pubkey(), 1_000_000_000).await?, last_valid).await?;
    seen.push(("own_wait", text(rpc.send_and_confirm_transaction(&signed(2_000_000)).await)));

    seen.push(("sent_again", send(&rpc, &signed(2_000_000)).await.is_ok().to_string()));

    let members: Vec<_> = seen.iter().map(|(name, value)| format!("{name:?}:{value:?}")).collect();
    println!("{{{}}}", members.join(","));
    Ok(())
}

fn text<T, E: std::fmt::Display>(result: Result<T, E>) -> String {
    result.err().map_or(String::new(), |error| error.to_string())
}
