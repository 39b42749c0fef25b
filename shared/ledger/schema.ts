import type { Migrations, Store } from '../store/open.ts';

/** The file that holds what was spent and used, inside `storage.data_dir`. */
export const LEDGER_FILE = 'ledger.db';

const COUNTERS = `
      calls INTEGER NOT NULL,
      credits INTEGER NOT NULL,
      refunded INTEGER NOT NULL,
      errors INTEGER NOT NULL,
      bytes_out INTEGER NOT NULL,
      refused INTEGER NOT NULL`;

const LATENCIES = ['within_10ms', 'within_50ms', 'within_250ms', 'within_1s', 'slower'];

const sumsBy = (unit: 'day' | 'month') => `CREATE TABLE usage_${unit}s (
      ${unit} INTEGER NOT NULL,
      account_id INTEGER NOT NULL,
      key_id TEXT NOT NULL,
      method TEXT NOT NULL,${COUNTERS},
      PRIMARY KEY (${unit}, account_id, key_id, method)
    ) STRICT, WITHOUT ROWID;`;

/**
 * The tables that both apps touch; a gateway writes, deploys adds up.
 *
 * `spent`: per account and node, two counters that only grow; what was spent is their difference.
 *
 * `usage_hours`: what a node counted of a key's method in one hour (hours since 1970, UTC), as absolute values. `credits`
 * and `refunded` are of every plan; `charged` and `returned` are those of them that went through `spent`, and are
 * written in the same transaction. The hour comes first in the key: what is written together lies together.
 *
 * `usage_days` (days since 1970) and `usage_months` (months since 1970) are sums of all nodes over hours that are no
 * longer there. `usage_settled` keeps, per account and node, what those hours said of `spent`, and begins with what was
 * spent before usage was counted: hours and settled together always equal `spent`.
 */
export const USAGE_MIGRATIONS: Migrations = {
  'ledger-1': `
    CREATE TABLE spent (
      account_id INTEGER NOT NULL,
      node TEXT NOT NULL,
      charged INTEGER NOT NULL,
      refunded INTEGER NOT NULL,
      PRIMARY KEY (account_id, node)
    ) STRICT, WITHOUT ROWID;
  `,
  'usage-1': `
    CREATE TABLE usage_hours (
      hour INTEGER NOT NULL,
      account_id INTEGER NOT NULL,
      key_id TEXT NOT NULL,
      method TEXT NOT NULL,
      node TEXT NOT NULL,${COUNTERS},
      charged INTEGER NOT NULL,
      returned INTEGER NOT NULL,
      PRIMARY KEY (hour, account_id, key_id, method, node)
    ) STRICT, WITHOUT ROWID;
    ${sumsBy('day')}
    ${sumsBy('month')}
    CREATE TABLE usage_settled (
      account_id INTEGER NOT NULL,
      node TEXT NOT NULL,
      charged INTEGER NOT NULL,
      returned INTEGER NOT NULL,
      PRIMARY KEY (account_id, node)
    ) STRICT, WITHOUT ROWID;
    INSERT INTO usage_settled SELECT account_id, node, charged, refunded FROM spent;
  `,
  'usage-2': ['usage_hours', 'usage_days', 'usage_months']
    .flatMap((table) =>
      LATENCIES.map((column) => `ALTER TABLE ${table} ADD COLUMN ${column} INTEGER NOT NULL DEFAULT 0;`),
    )
    .join('\n'),
  // One row a key of an API: the requests of its last minute, as Unix milliseconds in a JSON array.
  'api-requests-1': `
    CREATE TABLE api_requests (
      api TEXT NOT NULL,
      key_id TEXT NOT NULL,
      last_at_ms INTEGER NOT NULL,
      at_ms_json TEXT NOT NULL,
      PRIMARY KEY (api, key_id)
    ) STRICT, WITHOUT ROWID;
  `,
};

/** Credits that the account has spent on all nodes: charged minus refunded. Throws when the ledger cannot be read. */
export function spentOf(ledger: Store, accountId: number): number {
  const sum = ledger.query<{ spent: number | null }, [number]>(
    'SELECT sum(charged - refunded) AS spent FROM spent WHERE account_id = ?',
  );
  return sum.get(accountId)?.spent ?? 0;
}
