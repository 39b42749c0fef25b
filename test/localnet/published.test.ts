import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { address } from '@solana/kit';
import { encodeParsedInner, encodeTransaction } from '../../localnet/encode/transaction.ts';
import { type Json, type JsonObject, parseJson, printJson } from '../../localnet/json/value.ts';
import { readTransaction } from '../../localnet/protocol/transaction.ts';
import type { InnerInstructions, TransactionMeta } from '../../localnet/store/ledger.ts';
import { list, object, ownedAccount, startChain, text } from './harness.ts';

const fixture = (name: string): JsonObject =>
  object(parseJson(readFileSync(join(import.meta.dir, '../fixtures', name), 'utf8')));
const asSent = (value: Json) => parseJson(printJson(value));
const bytesOf = (base64: Json | undefined) => new Uint8Array(Buffer.from(text(base64), 'base64'));

const { source: accountsSource, accounts } = fixture('node-accounts.json');
const { source: transactionsSource, transactions } = fixture('node-transactions.json');

test(`accounts are parsed as a node parsed them (${text(accountsSource)})`, async () => {
  const published = list(accounts).map(object);
  const states = published.map(({ address: key, owner, data }) => {
    return [address(text(key)), ownedAccount(address(text(owner)), bytesOf(data))] as const;
  });
  using net = await startChain({ accounts: states });
  expect(published.length).toBeGreaterThan(8);
  for (const { what, address: key, parsed } of published) {
    const found = object(await net.valueOf('getAccountInfo', text(key), { encoding: 'jsonParsed' }));
    expect([what, found['data']]).toEqual([what, parsed]);
  }
});

const NO_META: TransactionMeta = {
  error: null,
  fee: 5_000n,
  preBalances: [],
  postBalances: [],
  preTokenBalances: [],
  postTokenBalances: [],
  writableKeys: [],
  loadedWritable: [],
  loadedReadonly: [],
  logs: [],
  unitsConsumed: 0n,
  innerInstructions: [],
  returnData: null,
  memo: null,
};

test.each(
  list(transactions)
    .map(object)
    .map((each) => [text(each['what']), each] as const),
)(
  `the transaction %s is parsed as a node parsed it (${text(transactionsSource)})`,
  (_, { wire, message, compiledInner, innerInstructions }) => {
    const read = readTransaction(bytesOf(wire));
    if (read.kind === 'malformed') throw new Error(read.reason);
    const keys = list(object(message)['accountKeys']).map(object);
    const writableKeys = keys.flatMap(({ pubkey, writable }) =>
      writable === true ? [address(text(pubkey))] : [],
    );
    const encoded = encodeTransaction(read.transaction, 'jsonParsed', { ...NO_META, writableKeys });
    // The fixture leaves out what is the same of each: that the transaction itself names it.
    const accountKeys = keys.map((key) => ({ ...key, source: 'transaction' }));
    expect(object(asSent(encoded))['message']).toEqual({ ...object(message), accountKeys });
    // The fixture has them in the form in which the ledger keeps them.
    const inner = compiledInner as unknown as InnerInstructions;
    expect(asSent(encodeParsedInner(inner, read.transaction.staticKeys))).toEqual(innerInstructions ?? null);
  },
);
