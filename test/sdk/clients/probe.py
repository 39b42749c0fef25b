"""What solana-py does, as one JSON object. It goes beside send.py."""

import asyncio
import json
import logging
import os
import time
import traceback
from email.utils import formatdate

import httpx2
from solana.exceptions import SolanaRpcException
from solana.rpc.async_api import AsyncClient
from solana.rpc.commitment import Confirmed
from solana.rpc.models import TxOpts
from solders.keypair import Keypair
from solders.message import MessageV0
from solders.signature import Signature
from solders.system_program import TransferParams, transfer
from solders.transaction import VersionedTransaction

from send import confirm, http_error, retry_after, send, with_retries

URL, KEY, CLOSED, TROUBLED = (os.environ[name] for name in ("SLUICE_URL", "SLUICE_KEY", "CLOSED_URL", "TROUBLED_URL"))
SYSTEM = Keypair().pubkey()
UNKNOWN = Signature.from_bytes(bytes(64))


def client(key=KEY, url=URL, **options):
    return AsyncClient(url, extra_headers={"x-token": key}, **options)


async def failure(call):
    """What a program that ends with this error prints."""
    try:
        await call
    except Exception:
        return traceback.format_exc()
    return ""


async def paid(rpc, payer, lamports, options):
    blockhash = (await rpc.get_latest_blockhash(Confirmed)).value.blockhash
    pay = transfer(TransferParams(from_pubkey=payer.pubkey(), to_pubkey=Keypair().pubkey(), lamports=lamports))
    transaction = VersionedTransaction(MessageV0.try_compile(payer.pubkey(), [pay], [], blockhash), [payer])
    return transaction, (await rpc.send_raw_transaction(bytes(transaction), options)).value if options else None


async def burst(calls, key, **options):
    """How many of the calls at once are refused."""
    async with client(key, **options) as rpc:
        failures = await asyncio.gather(*(failure(rpc.get_slot()) for _ in range(calls)))
        return sum(1 for text in failures if "429" in text)


async def main():
    seen = {}
    logged = []
    handler = logging.Handler()
    handler.emit = lambda record: logged.append(record.getMessage())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    async with AsyncClient(f"{URL}?api-key=sluice_secret") as rpc:
        seen["url_refused"] = await failure(rpc.get_slot())
        seen["default_timeout"] = rpc._provider.session.timeout.read
    seen["url_log"] = "\n".join(logged)
    logged.clear()
    async with client("sluice_secret") as rpc:
        seen["header_refused"] = await failure(rpc.get_slot()) + "\n".join(logged)
    logging.disable()

    async with client(os.environ["STUCK_KEY"]) as rpc:
        try:
            await rpc.get_slot()
        except SolanaRpcException as error:
            seen["limited"] = [str(error), http_error(error).headers["retry-after"]]
    async with client(os.environ["ONE_KEY"]) as rpc:
        await rpc.get_slot()
        seen["patient"] = (await with_retries(rpc.get_slot)).value
    in_9_seconds = formatdate(time.time() + 9, usegmt=True)
    seen["dated"] = 5 < retry_after(httpx2.Response(429, headers={"retry-after": in_9_seconds})) <= 9
    seen["unlimited"] = await burst(40, os.environ["TEN_KEY"])
    seen["limiter"] = await burst(16, os.environ["TEN_KEY_2"], rate_limit=8)

    async with client() as rpc:
        seen["history"] = await failure(rpc.get_signature_statuses([UNKNOWN], search_transaction_history=True))
        height = (await rpc.get_block_height(Confirmed)).value
        seen["expired"] = await failure(confirm(rpc, UNKNOWN, height))
        payer = Keypair()
        latest = (await rpc.get_latest_blockhash(Confirmed)).value.last_valid_block_height
        await confirm(rpc, (await rpc.request_airdrop(payer.pubkey(), 10**9, Confirmed)).value, latest)
        transaction, again = await paid(rpc, payer, 2_000_000, TxOpts(skip_preflight=True))
        await confirm(rpc, again, latest)
        seen["sent_again"] = str(await send(rpc, transaction)) == str(again)
        _, landed = await paid(rpc, payer, 2 * 10**9, TxOpts(skip_preflight=True))
        own = await rpc.confirm_transaction(landed, Confirmed, 0.1, latest)
        seen["own_wait_of_failed"] = str(own.value[0].err)
        seen["confirm_failed"] = await failure(confirm(rpc, landed, latest))
        transaction, _ = await paid(rpc, payer, 2 * 10**9, None)
        seen["send_refused"] = await failure(send(rpc, transaction))

    key = os.environ["TROUBLED_KEY"]
    async with client(key, TROUBLED, timeout=30, max_transport_retries=0) as rpc:
        seen["send_unknown"] = str(await send(rpc, transaction)) == str(transaction.signatures[0])
    async with client(os.environ["TROUBLED_TRIAL"], TROUBLED, timeout=0.8) as rpc:
        seen["resent"] = await failure(rpc.send_raw_transaction(bytes(transaction)))
        seen["dripped"] = len((await rpc.get_program_accounts(SYSTEM)).value)
    async with AsyncClient(f"{CLOSED}?api-key=sluice_secret") as rpc:
        seen["url_unreachable"] = await failure(rpc.get_slot())
    print(json.dumps(seen))


asyncio.run(main())
