import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { Database } from 'bun:sqlite';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import programs from '../../shared/programs.json';
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
});

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
      'its pages are damaged',
      (path) => {
        const bytes = readFileSync(path);
        writeFileSync(path, bytes.fill(0xab, 4_096, bytes.length - 4_096));
      },
      /^The database \S+localnet\.db is corrupt \([^\n]+\); put a backup in its place, or move it away to start empty\.$/,
    ],
    [
      'it is of a later format',
      (path) => edit(path, 'PRAGMA user_version = 99'),
      /^The database \S+localnet\.db has format 99 and this Sluice knows 2: /,
    ],
    [
      'its write-ahead log cannot be written',
      (path) => mkdirSync(`${path}-wal`),
      /^The database \S+localnet\.db cannot be opened \(\S+db-wal: it is a folder\)\.$/,
    ],
  ])('when %s', async (_, spoil, expected) => {
    const dataDir = mkdtempSync(join(folder, 'spoilt-'));
    (await at(dataDir))[Symbol.dispose]();
    spoil(join(dataDir, 'localnet.db'));
    expect(await sentence(dataDir)).toMatch(expected);
  });

  test('when another localnet runs on it, and until then', async () => {
    const dataDir = join(folder, 'taken');
    const net = await at(dataDir);
    expect(await sentence(dataDir)).toBe(`localnet is already running on the data directory ${dataDir}.`);
    net[Symbol.dispose]();
    expect(await sentence(dataDir)).toBe('it was opened');
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
