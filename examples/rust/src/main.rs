use reqwest::header::HeaderValue;
use solana_commitment_config::CommitmentConfig;
use solana_keypair::{Keypair, Signature, Signer};
use solana_rpc_client::{
    api::{
        client_error,
        client_error::{ErrorKind, TransactionError},
        request::RpcError,
    },
    http_sender::HttpSender,
    nonblocking::rpc_client::RpcClient,
    rpc_client::RpcClientConfig,
};
use solana_system_interface::instruction::transfer;
use solana_transaction::Transaction;
use std::{env, error::Error, time::Duration};

/// A client with the key in a header, and 60 seconds for an answer instead of 30.
fn connect(url: &str, key: &str) -> Result<RpcClient, Box<dyn Error>> {
    let mut token = HeaderValue::from_str(key)?;
    token.set_sensitive(true);
    let mut headers = HttpSender::default_headers();
    headers.insert("x-token", token);
    let http = reqwest::Client::builder()
        .default_headers(headers)
        .timeout(Duration::from_secs(60))
        .build()?;
    let sender = HttpSender::new_with_client(url, http);
    let config = RpcClientConfig::with_commitment(CommitmentConfig::confirmed());
    Ok(RpcClient::new_sender(sender, config))
}

/// Sends what was signed. It is no error when it may have been sent: its status tells.
async fn send(rpc: &RpcClient, transaction: &Transaction) -> client_error::Result<Signature> {
    match rpc.send_transaction(transaction).await {
        Err(error) if is_refused(&error) => Err(error),
        _ => Ok(transaction.signatures[0]),
    }
}

fn is_refused(error: &client_error::Error) -> bool {
    match error.kind() {
        ErrorKind::RpcError(RpcError::RpcResponseError { .. }) => {
            error.get_transaction_error() != Some(TransactionError::AlreadyProcessed)
        }
        ErrorKind::Reqwest(error) => error
            .status()
            .is_some_and(|status| status.is_client_error()),
        _ => false,
    }
}

/// Waits until the transaction is confirmed or can no longer be. If it gives any other error, call it again.
async fn confirm(
    rpc: &RpcClient,
    signature: Signature,
    last_valid: u64,
) -> Result<(), Box<dyn Error>> {
    let mut is_over = false;
    loop {
        match &rpc.get_signature_statuses(&[signature]).await?.value[0] {
            Some(status) if status.satisfies_commitment(rpc.commitment()) => {
                return Ok(status.status.clone()?);
            }
            Some(_) => is_over = false,
            None if is_over => {
                return Err(format!("{signature} has expired and will never land").into());
            }
            // One more status is read after this height: the last block it is valid in may have come between the two.
            None => is_over = rpc.get_block_height().await? > last_valid,
        }
        tokio::time::sleep(Duration::from_millis(450)).await;
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::var("SLUICE_URL").unwrap_or("http://127.0.0.1:8899".into());
    let rpc = connect(&url, &env::var("SLUICE_KEY")?)?;
    let (payer, to) = (Keypair::new(), Keypair::new().pubkey());
    let (blockhash, last_valid) = rpc
        .get_latest_blockhash_with_commitment(rpc.commitment())
        .await?;
    // On the embedded chain only; elsewhere the payer is yours and has what it pays.
    let airdrop = rpc.request_airdrop(&payer.pubkey(), 1_000_000_000).await?;
    confirm(&rpc, airdrop, last_valid).await?;

    let transaction = Transaction::new_signed_with_payer(
        &[transfer(&payer.pubkey(), &to, 2_000_000)],
        Some(&payer.pubkey()),
        &[&payer],
        blockhash,
    );
    confirm(&rpc, send(&rpc, &transaction).await?, last_valid).await?;
    println!("balance {}", rpc.get_balance(&to).await?);
    Ok(())
}
