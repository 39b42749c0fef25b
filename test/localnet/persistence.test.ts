import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { Database } from 'bun:sqlite';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import programs from '../../deploys/watch/programs.json';
import { LOADER_V3 } from '../../localnet/protocol/address.ts';
import { transferWire } from '../../localnet/protocol/keypair.ts';
import {
  BEGAN_MS,
  addressNumber,
  alice,
  bob,
  CHECKED,
  ROOTED_LAG,
  SLOT_MS,
  startChain,
  stillClock,
  systemAccount,
} from './harness.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'localnet-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const RICH = [
  [alice.address, systemAccount(10_000_000_000n)],
  [bob.address, systemAccount(1_005_000n)],
] as const;
const processed = { commitment: 'processed' };
const at = (dataDir: string, nowMs = BEGAN_MS) =>
  startChain({ dataDir, accounts: RICH, programs, clock: { ...stillClock, now: () => nowMs } });

describe('a restart', () => {
  test('goes on with the next slot of the same chain, with all its accounts and history', async () => {
    const dataDir = join(folder, 'restart');
    const first = await at(dataDir);
    first.advance(10);
    const sent = await first.transfer(alice, addressNumber(1), 1_000_000n);
    const emptied = await first.transfer(bob, addressNumber(2), 1_000_000n);
    first.advance(3);
    const look = async (net: typeof first) => [
      await net.result('getGenesisHash'),
      await net.result('getBlock', 450_000_010n, { commitment: 'confirmed' }),
      await net.result('getBlock', 449_000_000n),
      await net.result('getProgramAccounts', LOADER_V3, { encoding: 'base64' }),
    ];
    const seen = await look(first);
    first[Symbol.dispose]();

    using second = await at(dataDir, BEGAN_MS + 3_600_000);
    expect(await second.result('getSlot', processed)).toBe(450_000_014n);
    expect(await look(second)).toEqual(seen);
    expect(await second.valueOf('getBalance', addressNumber(1))).toBe(1_000_000n);
    expect(await second.valueOf('getAccountInfo', bob.address)).toBeNull();
    expect(await second.result('getTransactionCount')).toBe(2n);
    expect(await second.result('getSignaturesForAddress', bob.address)).toMatchObject([
      { signature: emptied },
    ]);
    expect(await second.valueOf('getSignatureStatuses', [sent])).toMatchObject([
      { confirmationStatus: 'finalized' },
    ]);
  });

  test('finds what was in progress finalized, and never an older finalized slot than before', async () => {
    const dataDir = join(folder, 'floor');
    const first = await at(dataDir);
    first.advance(10);
    await first.transfer(alice, addressNumber(1), 1_000_000n);
    first[Symbol.dispose]();
    using second = await at(dataDir);
    expect(await second.valueOf('getBalance', addressNumber(1), { commitment: 'finalized' })).toBe(
      1_000_000n,
    );
    for (let slot = 0; slot < ROOTED_LAG + 2; slot += 1) {
      expect(BigInt(String(await second.result('getSlot')))).toBeGreaterThanOrEqual(450_000_010n);
      second.advance();
    }
  });

  test('still takes the blockhashes of before and still knows their transactions', async () => {
    const dataDir = join(folder, 'hashes');
    const first = await at(dataDir);
    first.advance(10);
    const blockhash = first.blockhash();
    const once = transferWire(alice, addressNumber(1), 1_000_000n, blockhash);
    await first.send(once);
    first[Symbol.dispose]();
    using second = await at(dataDir);
    expect(await second.preflightError(once)).toMatchObject({ data: { err: 'AlreadyProcessed' } });
    await second.send(transferWire(alice, addressNumber(1), 2_000_000n, blockhash), CHECKED);
  });

  test('keeps block times from going back, whatever the clock says', async () => {
    const dataDir = join(folder, 'times');
    const first = await at(dataDir);
    first.advance(10);
    first[Symbol.dispose]();
    const second = await at(dataDir, BEGAN_MS - 86_400_000);
    second.advance(10);
    second[Symbol.dispose]();
    using third = await at(dataDir, BEGAN_MS + 86_400_000);
    third.advance(10);
    const times: number[] = [];
    for (let slot = 449_999_995n; slot < 450_000_030n; slot += 1n)
      times.push(Number(await third.result('getBlockTime', slot)));
    expect(times).toEqual(times.toSorted((one, other) => one - other));
    expect(times.at(-1)).toBe((BEGAN_MS + 86_400_000 + 7 * SLOT_MS - ((7 * SLOT_MS) % 1000)) / 1000);
  });

  test('after a crash skips no more slots than were reserved, and never repeats one', async () => {
    const dataDir = join(folder, 'crash');
    const first = await at(dataDir);
    first.advance(100);
    const copy = join(folder, 'crash-copy');
    // What a kill would leave: the file as it is, without a close.
    await Bun.$`cp -r ${dataDir} ${copy}`.quiet();
    const tip = BigInt(String(await first.result('getSlot', processed)));
    first[Symbol.dispose]();
    using second = await at(copy);
    const slot = BigInt(String(await second.result('getSlot', processed)));
    expect(slot).toBeGreaterThan(tip);
    expect(slot).toBeLessThanOrEqual(tip + 34n);
  });

  test('costs no rows for empty blocks', async () => {
    const dataDir = join(folder, 'empty');
    const net = await at(dataDir);
    net.advance(1_000);
    net[Symbol.dispose]();
    using db = new Database(join(dataDir, 'localnet.db'), { readonly: true });
    expect(db.query('SELECT count(*) AS n FROM tx').get()).toEqual({ n: 0 });
    expect(db.query('SELECT count(*) AS n FROM anchor').get()).toEqual({ n: 2 });
  });
});

/** Permissions do not bind root: its tests act as nobody. */
async function withoutPrivileges<T>(act: () => Promise<T>): Promise<T> {
  const NOBODY = 65_534;
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) process.seteuid?.(NOBODY);
  try {
    return await act();
  } finally {
    if (isRoot) process.seteuid?.(0);
  }
}

describe('a database that cannot be used is one sentence', () => {
  const sentence = async (dataDir: string) => {
    try {
      (await at(dataDir))[Symbol.dispose]();
      return 'it was opened';
    } catch (cause) {
      return cause instanceof Error ? cause.message : String(cause);
    }
  };
  const edit = (path: string, sql: string) => {
    using db = new Database(path);
    db.run(sql);
  };

  test.each<[string, (path: string) => unknown, RegExp]>([
    [
      'it is no database',
      (path) => writeFileSync(path, 'this is not a database, however long it may be '.repeat(100)),
      /^file is not a database; remove the file to start a new chain$/,
    ],
    [
      'its pages are damaged',
      (path) => {
        const bytes = readFileSync(path);
        writeFileSync(path, bytes.fill(0xab, 4_096, bytes.length - 4_096));
      },
      /; remove the file to start a new chain$/,
    ],
    [
      'it is of another format',
      (path) => edit(path, 'PRAGMA user_version = 99'),
      /^its format is 99, not 1; another version of localnet made it$/,
    ],
    [
      'its write-ahead log cannot be written',
      (path) => mkdirSync(`${path}-wal`),
      /^\S+db-wal: it is a folder$/,
    ],
    ['it is not permitted', (path) => chmodSync(path, 0o000), /^[^;\n]*permission denied[^;\n]*$/],
    ['it may not be written', (path) => chmodSync(path, 0o444), /^[^;\n]*permission denied[^;\n]*$/],
    [
      'its folder is not permitted',
      (path) => chmodSync(dirname(path), 0o000),
      /^[^;\n]*permission denied[^;\n]*$/,
    ],
    [
      'its disk is full',
      (path) => {
        rmSync(path);
        symlinkSync('/dev/full', path);
      },
      /^[^;\n]+$/,
    ],
    [
      'its folder is a file',
      (path) => {
        rmSync(dirname(path), { recursive: true });
        writeFileSync(dirname(path), '');
      },
      /^a part of its path is no folder$/,
    ],
  ])('when %s; only a file that is bad is advised to be removed', async (_, spoil, reason) => {
    const dataDir = mkdtempSync(join(tmpdir(), 'localnet-spoilt-'));
    (await at(dataDir))[Symbol.dispose]();
    const path = join(dataDir, 'localnet.db');
    spoil(path);
    try {
      const isDenied = reason.source.includes('permission denied');
      const complaint = await (isDenied ? withoutPrivileges(() => sentence(dataDir)) : sentence(dataDir));
      const [, found = complaint] =
        /^The localnet's database \S+localnet\.db cannot be used: (.*)\.$/.exec(complaint) ?? [];
      expect(found).toMatch(reason);
    } finally {
      chmodSync(dataDir, 0o700);
      rmSync(dataDir, { recursive: true });
    }
  });

  test('when another localnet runs on it', async () => {
    const dataDir = join(folder, 'taken');
    using _net = await at(dataDir);
    expect(await sentence(dataDir)).toContain('cannot be used: another localnet runs on it.');
  });

  test('when half a chain is in it', async () => {
    const dataDir = join(folder, 'half');
    (await at(dataDir))[Symbol.dispose]();
    edit(join(dataDir, 'localnet.db'), 'DELETE FROM anchor');
    expect(await sentence(dataDir)).toBe(
      "The localnet's database holds no whole chain; remove the file to start a new one.",
    );
  });
});
