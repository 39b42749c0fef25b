import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { address } from '@solana/kit';
import { isJsonArray, parseJson } from '../../localnet/json/value.ts';
import { object, ownedAccount, startChain } from './harness.ts';

const { source, accounts } = object(
  parseJson(readFileSync(join(import.meta.dir, '../fixtures/kit-accounts.json'), 'utf8')),
);
const published = isJsonArray(accounts) ? accounts.map(object) : [];

test(`accounts are parsed as a node parsed them (${String(source)})`, async () => {
  const states = published.map(({ address: key, owner, data }) => {
    const bytes = Buffer.from(String(data), 'base64');
    return [address(String(key)), ownedAccount(address(String(owner)), new Uint8Array(bytes))] as const;
  });
  using net = await startChain({ accounts: states });
  expect(published.length).toBeGreaterThan(8);
  for (const { what, address: key, parsed } of published) {
    const found = object(await net.valueOf('getAccountInfo', String(key), { encoding: 'jsonParsed' }));
    expect([what, found['data']]).toEqual([what, parsed]);
  }
});
