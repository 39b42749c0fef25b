import { afterAll, describe, expect, test } from 'bun:test';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { tmpdir } from 'node:os';
import { noopElf } from '../../localnet/genesis/noop-elf.ts';
import { readAccountFiles } from '../../localnet/genesis/account-files.ts';
import { createLocalnet } from '../../localnet/compose.ts';
import { LOADER_V2 } from '../../localnet/protocol/address.ts';
import { faucetKeypair } from '../../localnet/protocol/keypair.ts';
import { addressNumber, alice, base64, bob, ROOTED_LAG, SLOT_MS, startChain, stillClock } from './harness.ts';

const folder = mkdtempSync(join(tmpdir(), 'sluice-accounts-'));
afterAll(() => rmSync(folder, { recursive: true }));

const OWNER = addressNumber(1_000);
const ACCOUNT = {
  lamports: 2_000_000,
  data: [base64(Buffer.from('héllo')), 'base64'],
  owner: OWNER,
  executable: false,
  // What no number of JavaScript holds.
  rentEpoch: '18446744073709551615',
  space: 6,
};

/** The text of a file; `spoilt` replaces members of the account. */
function fileText(pubkey: unknown, spoilt: object = {}): string {
  const account = { ...ACCOUNT, ...spoilt };
  return JSON.stringify({ pubkey, account }, undefined, 2).replaceAll(/"(\d{15,})"/g, '$1');
}

let count = 0;
function dirOf(files: Readonly<Record<string, string>>): string {
  const dir = join(folder, String(count++));
  mkdirSync(dir);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text);
  return dir;
}

function accountsOf(dir: string | undefined, named: readonly (readonly [string, string])[] = []) {
  const files = readAccountFiles({ dir, named });
  if (files.kind === 'problems') throw new Error(files.lines.join('\n'));
  return files.accounts;
}

/** A chain in a folder, or in memory, with the accounts of files. */
async function startWith(dir: string | undefined, dataDir?: string) {
  const localnet = await createLocalnet({
    programs: [],
    accounts: accountsOf(dir),
    dataDir,
    slotMs: SLOT_MS,
    rootedLag: ROOTED_LAG,
    clock: stillClock,
    random: (bytes) => new Uint8Array(bytes).fill(7),
  });
  return { localnet, account: localnet.chain.viewAt('processed').account };
}

describe('files of accounts', () => {
  test('are read from a folder, and singly under any address, in each encoding of the data', () => {
    const hello = Buffer.from('héllo');
    const dir = dirOf({
      'b.json': fileText(bob.address, { data: ['', 'base58'], lamports: '18446744073709551615' }),
      'a.json': fileText(alice.address),
      'zstd.json': fileText(addressNumber(1), { data: [base64(Bun.zstdCompressSync(hello)), 'base64+zstd'] }),
      'README.md': 'no account',
    });
    const own = join(
      dirOf({ 'own.json': fileText(addressNumber(2), { data: ['Cn8eVZg', 'base58'] }) }),
      'own.json',
    );
    const read = accountsOf(dir, [
      [addressNumber(3), own],
      ['-', own],
    ]);
    expect(read.map(({ file, address }) => [file, address])).toEqual([
      [join(dir, 'a.json'), alice.address],
      [join(dir, 'b.json'), bob.address],
      [join(dir, 'zstd.json'), addressNumber(1)],
      [own, addressNumber(3)],
      [own, addressNumber(2)],
    ]);
    const [first, second, third, fourth] = read;
    const rest = { owner: OWNER, executable: false, rentEpoch: 18446744073709551615n };
    expect(first?.state).toEqual({ lamports: 2_000_000n, data: new Uint8Array(hello), ...rest });
    expect(second?.state).toEqual({ lamports: 18446744073709551615n, data: new Uint8Array(), ...rest });
    expect(third?.state.data).toEqual(new Uint8Array(hello));
    expect(Buffer.from(fourth?.state.data ?? []).toString()).toBe('hello');
  });

  const long = 'A'.repeat(100);
  const large = base64(Bun.zstdCompressSync(new Uint8Array(10 * 1024 * 1024 + 1)));
  const data = '[text, "base64"], "base58" or "base64+zstd", at most 10485760 bytes';
  const u64 = '18446744073709551615';
  test.each<[string, string]>([
    ['['.repeat(100_000), 'is not JSON'],
    ['{"pubkey":"a","account":[]}', 'has no member account with the fields of an account'],
    [fileText(undefined), 'pubkey: found nothing, expected an address in base58'],
    [
      fileText(OWNER, { owner: long }),
      `account.owner: found "${'A'.repeat(56)}..., expected an address in base58`,
    ],
    [fileText(OWNER, { lamports: 0 }), `account.lamports: found 0, expected a whole number from 1 to ${u64}`],
    [
      fileText(OWNER, { rentEpoch: '18446744073709551616' }),
      `account.rentEpoch: found 18446744073709551616, expected a whole number up to ${u64}`,
    ],
    ...[
      'AA==',
      ['AA', 'base64'],
      ['0', 'base58'],
      ['AA==', 'base64+zstd'],
      ['AA==', 'hex'],
      { program: 'nonce' },
    ].map((bad): [string, string] => [
      fileText(OWNER, { data: bad }),
      `account.data: found ${JSON.stringify(bad)}, expected ${data}`,
    ]),
    [
      fileText(OWNER, { data: [large, 'base64+zstd'] }),
      `account.data: found ["${large.slice(0, 55)}..., expected ${data}`,
    ],
  ])('%#: what is wrong with one is a sentence with the file and the member', (text, line) => {
    const dir = dirOf({ 'bad.json': text });
    expect(readAccountFiles({ dir, named: [] })).toEqual({
      kind: 'problems',
      lines: [`${join(dir, 'bad.json')}: ${line}`],
    });
  });

  test('everything that is wrong with all of them is told at once', () => {
    const dir = dirOf({
      'a.json': fileText(alice.address, { owner: 7, executable: 'no' }),
      'b.json': '?',
      'c.json': fileText(bob.address),
      'd.json': fileText(bob.address),
    });
    const missing = join(dir, 'missing.json');
    expect(
      readAccountFiles({
        dir,
        named: [
          ['nobody', missing],
          ['nobody', join(dir, 'c.json')],
        ],
      }),
    ).toEqual({
      kind: 'problems',
      lines: [
        `${join(dir, 'a.json')}: account.owner: found 7, expected an address in base58`,
        `${join(dir, 'a.json')}: account.executable: found "no", expected true or false`,
        `${join(dir, 'b.json')}: is not JSON`,
        `${join(dir, 'd.json')}: pubkey: ${bob.address} is in ${join(dir, 'c.json')} too`,
        expect.stringMatching(/missing\.json: cannot be read \(/),
        `${join(dir, 'c.json')}: --account: found "nobody", expected an address in base58`,
      ],
    });
  });
});

describe('a chain with files of accounts', () => {
  test('has them from its first slot, those of genesis replaced', async () => {
    const dir = dirOf({ 'a.json': fileText(alice.address), 'f.json': fileText(faucetKeypair().address) });
    using net = await startChain({
      accounts: accountsOf(dir).map(({ address, state }) => [address, state] as const),
    });
    expect(await net.valueOf('getAccountInfo', alice.address, { encoding: 'base64' })).toMatchObject({
      data: ACCOUNT.data,
      lamports: 2_000_000n,
      owner: OWNER,
      rentEpoch: 18446744073709551615n,
    });
    expect(await net.balance(faucetKeypair().address)).toBe(2_000_000n);
    expect(await net.result('getProgramAccounts', OWNER, { encoding: 'base64' })).toHaveLength(2);
  });

  test('keeps what became of them over a restart, and takes further ones', async () => {
    const dataDir = dirOf({});
    const first = await startWith(
      dirOf({ 'a.json': fileText(alice.address), 'b.json': fileText(bob.address) }),
      dataDir,
    );
    first.localnet.close();
    const later = dirOf({
      'a.json': fileText(alice.address, { lamports: 5 }),
      'b.json': fileText(bob.address, { lamports: 5 }),
      'c.json': fileText(addressNumber(3), { lamports: 5 }),
    });
    for (const dir of [later, undefined]) {
      const { localnet, account } = await startWith(dir, dataDir);
      const balances = [alice.address, bob.address, addressNumber(3)].map((key) => account(key)?.lamports);
      localnet.close();
      expect(balances).toEqual([2_000_000n, 2_000_000n, 5n]);
    }
  });

  test('runs a program of files, whatever their order, and refuses one that is none by its file', async () => {
    const program = addressNumber(900);
    const code = (elf: Uint8Array) =>
      fileText(program, { owner: LOADER_V2, executable: true, data: [base64(elf), 'base64'] });
    const good = await startWith(dirOf({ 'p.json': code(noopElf(8)) }));
    expect(good.account(program)).toMatchObject({ executable: true, owner: LOADER_V2 });
    good.localnet.close();
    const dir = dirOf({ 'p.json': code(Buffer.from('no program')) });
    await expect(startWith(dir)).rejects.toThrow(
      `${join(dir, 'p.json')}: account.data: holds no program that can be run (`,
    );
  });
});
