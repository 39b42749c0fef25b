/*
 * The chain on disk: who it is, how far it went, its accounts and its transactions. Empty blocks are not
 * kept; they follow from the seed and the anchors.
 */
import { join } from 'node:path';
import { address, type Address } from '@solana/kit';
import { takeLock } from '../../shared/store/lock.ts';
import { type Migrations, openStore, type Store } from '../../shared/store/open.ts';
import { type Json, parseJson, printJson } from '../json/value.ts';
import type { AccountState } from '../protocol/account.ts';
import type { TransactionErrorJson } from '../protocol/error.ts';

type AccountRow = {
  address: string;
  lamports: bigint;
  data: Uint8Array;
  owner: string;
  executable: bigint;
  rent_epoch: bigint;
};
type TransactionRow = { slot: bigint; position: bigint; signature: string; wire: Uint8Array; meta: string };

/** From `slot` on, slots begin at `atMs` (Unix milliseconds) plus a multiple of `slotMs`. */
export type Anchor = Readonly<{ slot: bigint; atMs: number; slotMs: number }>;

/** A place in the ledger: a transaction's slot and position within it. */
export type Place = Readonly<{ slot: bigint; position: number }>;

export type Ledger = ReturnType<typeof openLedger>;

/**
 * Opens `localnet.db` in `dataDir`, or a ledger in memory when that is undefined. One process owns it: two chains on one
 * file would each overwrite the other's accounts. Throws an Error with one sentence when the file cannot be used.
 */
export function openLedger(dataDir: string | undefined) {
  const locking = dataDir === undefined ? undefined : takeLock(dataDir, 'localnet');
  if (locking?.kind === 'refused') throw new Error(locking.sentence);
  const path = dataDir === undefined ? ':memory:' : join(dataDir, 'localnet.db');
  const opened = openStore(path, MIGRATIONS, 'whole');
  if (opened.kind === 'unusable') {
    locking?.lock.release();
    throw new Error(opened.sentence);
  }
  const db = opened.store;
  const sql = statements(db);
  for (const statement of Object.values(sql)) statement.safeIntegers(true);

  /** All writes of `work`, or none. */
  const atomically = (work: () => void) => db.transaction(work).immediate();

  function commit(record: TransactionRecord | undefined, keys: readonly Address[], accounts: Changed): void {
    atomically(() => {
      for (const [key, state] of accounts) writeAccount(key, state);
      if (record === undefined) return;
      const { slot, position, signature, wire, meta } = record;
      sql.insertTransaction.run({ slot, position, signature, wire, meta: printJson(meta) });
      for (const key of new Set(keys)) sql.insertAddress.run({ address: key, slot, position });
    });
  }

  function writeAccount(key: Address, state: AccountState | undefined): void {
    sql.writeAccount.run({
      address: key,
      lamports: BigInt.asIntN(64, state?.lamports ?? 0n),
      data: state?.data ?? new Uint8Array(),
      owner: state?.owner ?? '',
      executable: state?.executable === true ? 1 : 0,
      rent_epoch: BigInt.asIntN(64, state?.rentEpoch ?? 0n),
    });
  }

  return {
    get: (name: string) => sql.get.get({ name })?.value,
    set: (name: string, value: string) => void sql.set.run({ name, value }),
    atomically,
    commit,
    /** Every account that was ever written; without a state, it was removed. */
    accounts: () => sql.accounts.all().map((row) => [address(row.address), stateFrom(row)] as const),
    anchors: (): Anchor[] =>
      sql.anchors
        .all()
        .map((row) => ({ slot: row.slot, atMs: Number(row.at_ms), slotMs: Number(row.slot_ms) })),
    addAnchor: (anchor: Anchor) =>
      void sql.addAnchor.run({ slot: anchor.slot, at_ms: anchor.atMs, slot_ms: anchor.slotMs }),
    count: (upTo: bigint): bigint => sql.count.get({ slot: upTo })?.n ?? 0n,
    /** Transactions in windows of `size` slots, from one slot until before another, by the window's number. */
    countsByWindow: (from: bigint, until: bigint, size: bigint): ReadonlyMap<bigint, bigint> =>
      new Map(sql.countsByWindow.all({ from, until, size }).map((row) => [row.number, row.n])),
    find(signature: string): TransactionRecord | undefined {
      const row = sql.find.get({ signature });
      return row === null ? undefined : recordFrom(row);
    },
    inSlot: (slot: bigint): TransactionRecord[] => sql.inSlot.all({ slot }).map(recordFrom),
    /** Transactions that name an address, newest first, strictly between two places. */
    naming: (key: Address, before: Place, after: Place, limit: number): TransactionRecord[] =>
      sql.naming
        .all({
          address: key,
          before_slot: before.slot,
          before_position: before.position,
          after_slot: after.slot,
          after_position: after.position,
          limit,
        })
        .map(recordFrom),
    close(): void {
      // An unfinalized statement would keep the file open.
      for (const statement of Object.values(sql)) statement.finalize();
      db.close();
      locking?.lock.release();
    },
  } as const;
}

type Changed = Iterable<readonly [Address, AccountState | undefined]>;

function statements(db: Store) {
  return {
    get: db.prepare<{ value: string }, { name: string }>('SELECT value FROM chain WHERE name = $name'),
    set: db.prepare('INSERT INTO chain VALUES ($name, $value) ON CONFLICT DO UPDATE SET value = $value'),
    accounts: db.prepare<AccountRow, []>('SELECT * FROM account'),
    writeAccount: db.prepare(
      'INSERT OR REPLACE INTO account VALUES ($address, $lamports, $data, $owner, $executable, $rent_epoch)',
    ),
    anchors: db.prepare<{ slot: bigint; at_ms: bigint; slot_ms: bigint }, []>(
      'SELECT * FROM anchor ORDER BY slot',
    ),
    addAnchor: db.prepare('INSERT OR REPLACE INTO anchor VALUES ($slot, $at_ms, $slot_ms)'),
    insertTransaction: db.prepare('INSERT INTO tx VALUES ($slot, $position, $signature, $wire, $meta)'),
    insertAddress: db.prepare('INSERT INTO tx_address VALUES ($address, $slot, $position)'),
    count: db.prepare<{ n: bigint }, { slot: bigint }>('SELECT count(*) AS n FROM tx WHERE slot <= $slot'),
    countsByWindow: db.prepare<{ number: bigint; n: bigint }, { from: bigint; until: bigint; size: bigint }>(
      'SELECT slot / $size AS number, count(*) AS n FROM tx WHERE slot >= $from AND slot < $until GROUP BY number',
    ),
    find: db.prepare<TransactionRow, { signature: string }>('SELECT * FROM tx WHERE signature = $signature'),
    inSlot: db.prepare<TransactionRow, { slot: bigint }>(
      'SELECT * FROM tx WHERE slot = $slot ORDER BY position',
    ),
    naming: db.prepare<TransactionRow, Record<string, string | number | bigint>>(
      `SELECT tx.* FROM tx_address AS named JOIN tx USING (slot, position)
       WHERE named.address = $address AND (named.slot, named.position) < ($before_slot, $before_position)
         AND (named.slot, named.position) > ($after_slot, $after_position)
       ORDER BY named.slot DESC, named.position DESC LIMIT $limit`,
    ),
  };
}

function stateFrom(row: AccountRow): AccountState | undefined {
  if (row.owner === '') return undefined;
  return {
    lamports: BigInt.asUintN(64, row.lamports),
    data: row.data,
    owner: address(row.owner),
    executable: row.executable === 1n,
    rentEpoch: BigInt.asUintN(64, row.rent_epoch),
  };
}

function recordFrom(row: TransactionRow): TransactionRecord {
  const meta = parseJson(row.meta) as unknown as TransactionMeta; // written by `commit` above, from the same type
  return { ...row, position: Number(row.position), meta };
}

/** A token account's balance before or after a transaction, at its place among the account keys. */
export type TokenBalance = Readonly<{
  accountIndex: bigint;
  mint: Address;
  owner: Address;
  programId: Address;
  amount: bigint;
  decimals: bigint;
}>;

/** Inner instructions in Agave's compiled form; top-level instructions without any are left out. */
export type InnerInstructions = readonly Readonly<{
  index: number | bigint;
  instructions: readonly Readonly<{
    programIdIndex: number | bigint;
    accounts: readonly (number | bigint)[];
    data: string;
    stackHeight: number | bigint;
  }>[];
}>[];

/** The result of a transaction, as it is kept. Integers are bigint, because that is how they are read back. */
export type TransactionMeta = Readonly<{
  error: TransactionErrorJson | null;
  fee: bigint;
  preBalances: readonly bigint[];
  postBalances: readonly bigint[];
  preTokenBalances: readonly TokenBalance[];
  postTokenBalances: readonly TokenBalance[];
  writableKeys: readonly Address[];
  loadedWritable: readonly Address[];
  loadedReadonly: readonly Address[];
  logs: readonly string[];
  unitsConsumed: bigint;
  innerInstructions: InnerInstructions;
  /** In Agave's form, or null. */
  returnData: Json;
  memo: string | null;
}>;

/** A transaction in its block: `position` counts from 0 within the slot. */
export type TransactionRecord = Readonly<{
  slot: bigint;
  position: number;
  signature: string;
  wire: Uint8Array;
  meta: TransactionMeta;
}>;

/** The tables of one chain. `address`, `owner` and `signature` are base58; u64 are kept as the i64 of the same bits. */
const MIGRATIONS: Migrations = {
  'localnet-1': `
CREATE TABLE IF NOT EXISTS chain (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS anchor (slot INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, slot_ms INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS account (
  address TEXT PRIMARY KEY, lamports INTEGER NOT NULL, data BLOB NOT NULL, owner TEXT NOT NULL,
  executable INTEGER NOT NULL, rent_epoch INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS tx (
  slot INTEGER NOT NULL, position INTEGER NOT NULL, signature TEXT NOT NULL UNIQUE, wire BLOB NOT NULL, meta TEXT NOT NULL,
  PRIMARY KEY (slot, position)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tx_address (
  address TEXT NOT NULL, slot INTEGER NOT NULL, position INTEGER NOT NULL,
  PRIMARY KEY (address, slot, position)
) STRICT, WITHOUT ROWID;
`,
};
