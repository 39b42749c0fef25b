import type { Migrations } from '../../../shared/store/open.ts';

/**
 * The ledger's tables about the processes of its host.
 *
 * `nodes`: the gateway processes of this data directory, each with the number of its latest start.
 *
 * The others are the centre where leases meet while there is no Redis. `rates`: one state per account, for its centre
 * alone, worth keeping until `until_ms`; `scans` is the same for its scans. `credits` and `credit_holdings`: the account's total, and per node four
 * counters that only grow; total - sum(granted - returned) is what nobody holds, and always granted - returned >=
 * charged - refunded. `credit_releases`: what nodes held that never came back, given back to the account.
 */
export const LEASE_MIGRATIONS: Migrations = {
  'ledger-2-nodes': `
    CREATE TABLE nodes (
      node TEXT PRIMARY KEY,
      fence INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
  `,
  'ledger-3-leases': `
    CREATE TABLE rates (
      account_id INTEGER PRIMARY KEY,
      state TEXT NOT NULL,
      until_ms INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX rates_by_end ON rates (until_ms);
    CREATE TABLE credits (
      account_id INTEGER PRIMARY KEY,
      revision INTEGER NOT NULL,
      total INTEGER NOT NULL,
      at_ms INTEGER NOT NULL,
      clock_ms INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE credit_holdings (
      account_id INTEGER NOT NULL,
      node TEXT NOT NULL,
      fence INTEGER NOT NULL,
      seq INTEGER NOT NULL,
      granted INTEGER NOT NULL,
      returned INTEGER NOT NULL,
      charged INTEGER NOT NULL,
      refunded INTEGER NOT NULL,
      heard_ms INTEGER NOT NULL,
      needs_until_ms INTEGER NOT NULL,
      PRIMARY KEY (account_id, node)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE credit_releases (
      account_id INTEGER NOT NULL,
      node TEXT NOT NULL,
      credits INTEGER NOT NULL,
      at_ms INTEGER NOT NULL
    ) STRICT;
  `,
  'ledger-5-scans': `
    CREATE TABLE scans (
      account_id INTEGER PRIMARY KEY,
      state TEXT NOT NULL,
      until_ms INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX scans_by_end ON scans (until_ms);
  `,
};
