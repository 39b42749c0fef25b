/** The tables of one chain. `address`, `owner` and `signature` are base58; u64 are kept as the i64 of the same bits. */
export const SCHEMA = `
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
`;

/** Raised whenever the tables change; a file with another version is refused. */
export const SCHEMA_VERSION = 1;
