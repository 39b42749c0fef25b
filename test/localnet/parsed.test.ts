import { afterAll, beforeAll, expect, test } from 'bun:test';
import { getCreateAccountInstruction } from '@solana-program/system';
import {
  findAssociatedTokenPda,
  getCreateAssociatedTokenIdempotentInstruction,
  getInitializeMint2Instruction,
  getMintToCheckedInstruction,
  TOKEN_2022_PROGRAM_ADDRESS as TOKEN_2022,
} from '@solana-program/token-2022';
import type { Address, Instruction } from '@solana/kit';
import { Connection, PublicKey } from '@solana/web3.js';
import { GENESIS_SLOT } from '../../localnet/genesis/accounts.ts';
import { COMPUTE_BUDGET_PROGRAM, MEMO_PROGRAM } from '../../localnet/protocol/address.ts';
import { keypairNamed } from '../../localnet/protocol/keypair.ts';
import { until } from '../started/stack.ts';
import { addressNumber, alice } from './harness.ts';
import { kitWire, signerOf } from './kit-transaction.ts';
import { startServed } from './served.ts';

const MINT_BYTES = 82;
const DECIMALS = 2;
const mint = keypairNamed('a mint').address;
const memo: Instruction = { programAddress: MEMO_PROGRAM, data: new TextEncoder().encode('for lunch, 🦖') };
const unitLimit: Instruction = {
  programAddress: COMPUTE_BUDGET_PROGRAM,
  data: Uint8Array.of(2, 0x40, 0x0d, 3, 0),
};

let net: Awaited<ReturnType<typeof startServed>>;
let connection: Connection;
let hers: Address;
let signature: string;
beforeAll(async () => {
  net = await startServed();
  connection = new Connection(net.url, 'confirmed');
  await landed(await connection.requestAirdrop(new PublicKey(alice.address), 5_000_000_000));
  const [payer, newAccount] = [await signerOf(alice), await signerOf(keypairNamed('a mint'))];
  const lamports = await connection.getMinimumBalanceForRentExemption(MINT_BYTES);
  const token = await tokenAccountFor(alice.address);
  hers = token.ata;
  const created = { payer, newAccount, lamports, space: MINT_BYTES, programAddress: TOKEN_2022 };
  const minted = { mint, decimals: DECIMALS, amount: 1_050n, token: hers, mintAuthority: payer };
  signature = await connection.sendRawTransaction(
    await wireOf(
      getCreateAccountInstruction(created),
      getInitializeMint2Instruction({ mint, decimals: DECIMALS, mintAuthority: alice.address }),
      token.instruction,
      getMintToCheckedInstruction(minted),
      memo,
      unitLimit,
    ),
  );
  await landed(signature);
});
afterAll(async () => {
  expect(net.faults).toEqual([]);
  await net[Symbol.asyncDispose]();
});

async function tokenAccountFor(owner: Address) {
  const tokenProgram = TOKEN_2022;
  const [ata] = await findAssociatedTokenPda({ owner, mint, tokenProgram });
  const [payer, named] = [await signerOf(alice), { owner, ata, mint, tokenProgram }];
  return { ata, instruction: getCreateAssociatedTokenIdempotentInstruction({ payer, ...named }) };
}

async function wireOf(...instructions: readonly Instruction[]): Promise<Uint8Array> {
  return kitWire(alice, (await connection.getLatestBlockhash()).blockhash, instructions);
}

async function landed(sent: string): Promise<void> {
  const status = await until(async () => {
    const { value } = await connection.getSignatureStatus(sent);
    return value?.confirmationStatus === 'processed' ? undefined : value;
  });
  expect(status.err).toBeNull();
}

test('@solana/web3.js reads transactions parsed: instructions, what is called inside, and what Agave does not parse', async () => {
  const config = { maxSupportedTransactionVersion: 0 };
  const { slot = 0, transaction, meta } = (await connection.getParsedTransaction(signature, config)) ?? {};
  const token = { program: 'spl-token', programId: new PublicKey(TOKEN_2022), stackHeight: 1 };
  const tokenAmount = { amount: '1050', decimals: DECIMALS, uiAmount: 10.5, uiAmountString: '10.5' };
  const instructions: readonly unknown[] = [
    { program: 'system', parsed: { type: 'createAccount', info: { newAccount: mint } } },
    { ...token, parsed: { type: 'initializeMint2', info: { mint, mintAuthority: alice.address } } },
    {
      program: 'spl-associated-token-account',
      parsed: { type: 'createIdempotent', info: { account: hers } },
    },
    { ...token, parsed: { type: 'mintToChecked', info: { account: hers, tokenAmount } } },
    { program: 'spl-memo', parsed: 'for lunch, 🦖' },
    { accounts: [], data: 'Fj2Eoy', programId: new PublicKey(COMPUTE_BUDGET_PROGRAM), stackHeight: 1 },
  ];
  expect(transaction?.message as unknown).toMatchObject({ instructions });
  expect(meta?.innerInstructions?.map(({ index }) => index)).toEqual([2]);
  const inner = meta?.innerInstructions?.[0]?.instructions ?? [];
  expect(inner.map((each) => ('parsed' in each ? each.parsed.type : each.data))).toEqual([
    'getAccountDataSize',
    'createAccount',
    'initializeImmutableOwner',
    'initializeAccount3',
  ]);
  const info = { mint, extensionTypes: ['immutableOwner'] };
  expect(inner[0]).toMatchObject({ parsed: { info }, stackHeight: 2 });
  const { transactions } = await connection.getParsedBlock(slot, config);
  // Its types describe the transactions without their messages.
  expect(transactions[0]?.transaction as unknown).toMatchObject({ message: { instructions } });
});

test('@solana/web3.js reads accounts parsed: a token account with an extension, a mint, sysvars, a program', async () => {
  const parsed = async (key: string) =>
    (await connection.getParsedAccountInfo(new PublicKey(key))).value?.data;
  const owner = new PublicKey(alice.address);
  const config = { programId: new PublicKey(TOKEN_2022) };
  const { value } = await connection.getParsedTokenAccountsByOwner(owner, config);
  expect(value.map(({ pubkey }) => pubkey.toBase58())).toEqual([hers]);
  expect(value[0]?.account.data).toMatchObject({
    program: 'spl-token-2022',
    parsed: { type: 'account', info: { extensions: [{ extension: 'immutableOwner' }], mint } },
    space: 170,
  });
  expect(await parsed(mint)).toMatchObject({ parsed: { type: 'mint', info: { supply: '1050' } } });
  const rent = { type: 'rent', info: { lamportsPerByte: '6960' } };
  expect(await parsed('SysvarRent111111111111111111111111111111111')).toMatchObject({ parsed: rent });
  const hashes = JSON.stringify(await parsed('SysvarS1otHashes111111111111111111111111111'));
  expect(hashes).toContain(`"slot":${GENESIS_SLOT - 100n}`);
  const history = JSON.stringify(await parsed('SysvarS1otHistory11111111111111111111111111'));
  expect(history).toMatch(/"bits":"[01]{1048576}"/);
  expect(await parsed(TOKEN_2022)).toMatchObject({ parsed: { type: 'program' } });
});

test('simulated inner instructions are parsed, too', async () => {
  const wire = await wireOf((await tokenAccountFor(addressNumber(7))).instruction);
  const config = { encoding: 'base64', innerInstructions: true, commitment: 'confirmed' };
  const params = [Buffer.from(wire).toString('base64'), config];
  const answer = await fetch(net.url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'simulateTransaction', params }),
  });
  expect(await answer.text()).toContain('"type":"initializeAccount3"');
});
