"""Sends a transfer and waits for it by polling."""

import asyncio
import os
import time
from email.utils import mktime_tz, parsedate_tz

import httpx2
from solana.exceptions import SolanaRpcException
from solana.rpc.async_api import AsyncClient
from solana.rpc.commitment import Confirmed
from solana.rpc.core import RPCException
from solana.rpc.models import TxOpts
from solders.keypair import Keypair
from solders.message import MessageV0
from solders.signature import Signature
from solders.system_program import TransferParams, transfer
from solders.transaction import VersionedTransaction
from solders.transaction_status import TransactionConfirmationStatus


def http_error(error: Exception) -> httpx2.Response | None:
    """The answer that solana-py hides behind its error, where there was one."""
    cause = error.__cause__
    return cause.response if isinstance(cause, httpx2.HTTPStatusError) else None


def retry_after(response: httpx2.Response | None) -> float:
    """The seconds that an answer asks to wait by its Retry-After, a number or a date; infinity: it does not."""
    value = response.headers.get("retry-after", "") if response is not None else ""
    if value.isdigit():
        return float(value)
    date = parsedate_tz(value)
    return max(0.0, mktime_tz(date) - time.time()) if date else float("inf")


async def with_retries(call, attempts=5):
    """Awaits call(), again after as long as Retry-After says: a transaction refused with it was not sent."""
    for attempt in range(1, attempts + 1):
        try:
            return await call()
        except SolanaRpcException as error:
            seconds = retry_after(http_error(error))
            if attempt == attempts or seconds > 30:
                raise
        await asyncio.sleep(seconds)


async def send(client: AsyncClient, transaction: VersionedTransaction) -> Signature:
    """Sends what was signed. Does not raise when it may have been sent: its status tells."""
    options = TxOpts(preflight_commitment=Confirmed)
    try:
        await with_retries(lambda: client.send_raw_transaction(bytes(transaction), options))
    except RPCException as error:
        if "AlreadyProcessed" not in str(error):
            raise
    except SolanaRpcException as error:
        response = http_error(error)
        if response is not None and response.status_code < 500:
            raise
    return transaction.signatures[0]


async def confirm(client: AsyncClient, signature: Signature, last_valid_block_height: int) -> None:
    """Waits until the transaction is confirmed or can no longer be. If it raises anything else, call it again."""
    is_over = False
    while True:
        status = (await with_retries(lambda: client.get_signature_statuses([signature]))).value[0]
        if status:
            if status.confirmation_status != TransactionConfirmationStatus.Processed:
                if status.err:
                    raise RuntimeError(f"{signature} failed: {status.err}")
                return
            is_over = False
        elif is_over:
            raise RuntimeError(f"{signature} has expired and will never land")
        else:
            # One more status is read after this height: the last block it is valid in may have come between the two.
            height = (await with_retries(lambda: client.get_block_height(Confirmed))).value
            is_over = height > last_valid_block_height
        await asyncio.sleep(0.45)


async def main() -> None:
    url = os.environ.get("SLUICE_URL", "http://127.0.0.1:8899")
    headers = {"x-token": os.environ["SLUICE_KEY"]}
    # Without the last two it gives up after 5 s, and sends every call once more when it does.
    async with AsyncClient(url, extra_headers=headers, rate_limit=5, timeout=60, max_transport_retries=0) as client:
        payer, to = Keypair(), Keypair().pubkey()
        latest = (await client.get_latest_blockhash(Confirmed)).value
        # On the embedded chain only; elsewhere the payer is yours and has what it pays.
        airdrop = (await client.request_airdrop(payer.pubkey(), 1_000_000_000, Confirmed)).value
        await confirm(client, airdrop, latest.last_valid_block_height)

        pay = transfer(TransferParams(from_pubkey=payer.pubkey(), to_pubkey=to, lamports=2_000_000))
        message = MessageV0.try_compile(payer.pubkey(), [pay], [], latest.blockhash)
        transaction = VersionedTransaction(message, [payer])
        await confirm(client, await send(client, transaction), latest.last_valid_block_height)
        print("balance", (await client.get_balance(to, Confirmed)).value)


if __name__ == "__main__":
    asyncio.run(main())
