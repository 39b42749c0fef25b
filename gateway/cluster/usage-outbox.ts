import { CELL_COUNTER_NAMES, CELL_COUNTERS, type CellKey, NO_HOUR } from '../../shared/ledger/cells.ts';
import type { Migrations, Store } from '../../shared/store/open.ts';

/**
 * `unsent`: cells, and with hour -1 spendings, of this host's nodes that were written since they were last sent; `version`
 * grows with every write. `outbox`: the life of Redis in which all before was sent; nothing: none was; or KEPT_HERE.
 */
export const OUTBOX_MIGRATIONS: Migrations = {
  'ledger-5-outbox': `
    CREATE TABLE unsent (
      account_id INTEGER NOT NULL,
      hour INTEGER NOT NULL,
      key_id TEXT NOT NULL,
      method TEXT NOT NULL,
      node TEXT NOT NULL,
      version INTEGER NOT NULL,
      PRIMARY KEY (account_id, hour, key_id, method, node)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE outbox (one INTEGER PRIMARY KEY CHECK (one = 1), life TEXT) STRICT;
    INSERT INTO outbox VALUES (1, NULL);
  `,
};

/** Instead of a life of Redis: deploys reads this ledger itself, and nothing is noted. */
export const KEPT_HERE = '';

/** A cell as it is to be sent, with what its node has spent of the account at the same instant. */
export type UnsentUsage = CellKey &
  Readonly<{
    version: number;
    /** In their order, after commas; null: there is no such cell, only what was spent. */
    counters: string | null;
    /** `CHARGED,REFUNDED`. */
    spent: string;
  }>;

/** Counts that are still to be sent to deploys. All of it throws when the ledger does not answer. */
export type Outbox = ReturnType<typeof createOutbox>;

const PRUNED_MAX = 500;
/** Counters of a cell as they are sent, in this order; one that an older version did not send is 0. */
const COUNTERS = CELL_COUNTER_NAMES.map((name) => `u.${CELL_COUNTERS[name]}`).join(" || ',' || ");

const PLACE = 'account_id, hour, key_id, method, node';
const PLACE_OF_HOURS = 'hour, account_id, key_id, method, node';

/**
 * Notes every write of cells and spendings through `ledger`, in the write's own transaction. The triggers are this
 * connection's alone: what deploys writes into the same file comes from elsewhere, and is not sent back.
 */
export function noteUnsent(ledger: Store): void {
  const again = 'ON CONFLICT DO UPDATE SET version = version + 1';
  const noting = `WHEN (SELECT life FROM main.outbox) IS NOT '${KEPT_HERE}'`;
  for (const event of ['INSERT', 'UPDATE']) {
    ledger.run(`CREATE TEMP TRIGGER IF NOT EXISTS cell_${event} AFTER ${event} ON main.usage_hours ${noting} BEGIN
      INSERT INTO unsent VALUES (new.account_id, new.hour, new.key_id, new.method, new.node, 1) ${again}; END`);
    ledger.run(`CREATE TEMP TRIGGER IF NOT EXISTS spent_${event} AFTER ${event} ON main.spent ${noting} BEGIN
      INSERT INTO unsent VALUES (new.account_id, ${NO_HOUR}, '', '', new.node, 1) ${again}; END`);
  }
}

type Pruned = Readonly<{ account_id: number; node: string; charged: number; returned: number }>;

export function createOutbox(ledger: Store) {
  const some = ledger.prepare<UnsentUsage, [number]>(`
    SELECT n.account_id AS accountId, n.hour, n.key_id AS keyId, n.method, n.node, n.version,
      ${COUNTERS} AS counters, coalesce(s.charged, 0) || ',' || coalesce(s.refunded, 0) AS spent
    FROM (SELECT * FROM unsent ORDER BY ${PLACE} LIMIT ?) AS n
    LEFT JOIN usage_hours AS u USING (${PLACE}) LEFT JOIN spent AS s USING (account_id, node)`);
  const drop = ledger.prepare<null, [number, number, string, string, string, number]>(`
    DELETE FROM unsent WHERE account_id = ? AND hour = ? AND key_id = ? AND method = ? AND node = ? AND version = ?`);
  const sent = ledger.transaction((rows: readonly UnsentUsage[]) => {
    for (const { accountId, hour, keyId, method, node, version } of rows)
      drop.run(accountId, hour, keyId, method, node, version);
  });
  const lifeOf = ledger.prepare<{ life: string | null }, []>('SELECT life FROM outbox');
  const any = ledger.prepare('SELECT 1 FROM unsent LIMIT 1');
  const forgetSome = ledger.prepare<null, [number]>(
    `DELETE FROM unsent WHERE (${PLACE}) IN (SELECT ${PLACE} FROM unsent LIMIT ?)`,
  );
  const first = ledger.prepare<{ hour: number | null }, []>('SELECT min(hour) AS hour FROM usage_hours');
  const old = ledger.prepare<Pruned, [number]>(`
    DELETE FROM usage_hours WHERE (${PLACE_OF_HOURS}) IN (
      SELECT ${PLACE_OF_HOURS} FROM usage_hours AS u WHERE hour < ? AND NOT EXISTS (
        SELECT 1 FROM unsent AS n WHERE n.account_id = u.account_id AND n.hour = u.hour AND n.key_id = u.key_id
          AND n.method = u.method AND n.node = u.node) LIMIT ${PRUNED_MAX}) RETURNING account_id, node, charged, returned`);
  const settle = ledger.prepare<null, [number, string, number, number]>(`
    INSERT INTO usage_settled VALUES (?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET charged = charged + excluded.charged, returned = returned + excluded.returned`);
  const prune = ledger.transaction((beforeHour: number): boolean => {
    const rows = old.all(beforeHour);
    for (const { account_id, node, charged, returned } of rows)
      if (charged > 0 || returned > 0) settle.run(account_id, node, charged, returned);
    return rows.length === PRUNED_MAX;
  });
  const own = 'node IN (SELECT node FROM nodes)';

  return {
    /** Reads what waits, an account's together; one instant of the ledger. */
    some: (most: number): readonly UnsentUsage[] => some.all(most),
    /** Forgets what was sent, unless it was written again meanwhile. */
    sent: (rows: readonly UnsentUsage[]) => sent.immediate(rows),
    /** The life of Redis in which all before was sent, or KEPT_HERE. */
    life: () => lifeOf.get()?.life ?? null,
    /** Without KEPT_HERE writes of all processes are noted from now on; what was written before comes from its hours, by `again`. */
    setLife: (life: string) => void ledger.run('UPDATE outbox SET life = ?', [life]),
    /** Drops some of what waits; gives whether there may be more. A DELETE of nothing would hold up other processes. */
    forget: (most: number) => any.get() !== null && forgetSome.run(most).changes === most,
    /** Has what this host's nodes counted in an hour sent again. */
    again: (hour: number) =>
      void ledger.run(
        `INSERT OR IGNORE INTO unsent SELECT ${PLACE}, 1 FROM usage_hours WHERE hour = ? AND ${own}`,
        [hour],
      ),
    /** Has what this host's nodes spent sent again. */
    spentAgain: () =>
      void ledger.run(`INSERT OR IGNORE INTO unsent
        SELECT account_id, ${NO_HOUR}, '', '', node, 1 FROM spent WHERE ${own}`),
    /** Drops some of what was counted before an hour and is sent; gives whether there may be more. Spendings are kept. */
    prune: (beforeHour: number) => prune.immediate(beforeHour),
    firstHour: () => first.get()?.hour ?? undefined,
  };
}
