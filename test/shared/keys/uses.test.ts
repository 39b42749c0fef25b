import { afterEach, beforeEach, expect, test } from 'bun:test';
import { join } from 'node:path';
import { keyIdOf } from '../../../shared/keys/api-key.ts';
import { createKeyUses, type HeldKey } from '../../../shared/keys/lookup.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../../shared/keys/schema.ts';
import type { Store } from '../../../shared/store/open.ts';
import { createVirtualClock } from '../../gateway/virtual-clock.ts';
import { opened, temporaryFolder } from '../../started/gateway.ts';

const { clock, advance } = createVirtualClock();
const MINUTE = 60_000;
const NOON = 1_000_000 * MINUTE;

let folder: ReturnType<typeof temporaryFolder>;
let store: Store;
beforeEach(() => {
  folder = temporaryFolder();
  store = opened(join(folder.path, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
  store.run("INSERT INTO accounts (name, created_at_ms) VALUES ('payer', 0)");
});
afterEach(() => {
  store.close();
  folder[Symbol.dispose]();
});

/** Key number `n`, in the store and as a process holds it. */
function key(n: number): HeldKey {
  const hash = Buffer.from(n.toString(16).padStart(64, '0'), 'hex').reverse();
  const keyId = keyIdOf(Buffer.from(hash));
  store.run(
    "INSERT INTO keys (id, account_id, name, hash, prefix, last4, created_at_ms) VALUES (?, 1, 'n', ?, 'p', 'l', 0) ON CONFLICT DO NOTHING",
    [keyId, hash],
  );
  const caller = { keyId, accountId: 1, plan: undefined, creditsGranted: undefined };
  const identity = { kind: 'known', caller } as const;
  return { identity, suspended: false, expiresAtMs: undefined, revision: 1, usedMinute: 0 };
}

/** The one number of a query. */
const numberOf = (sql: string, ...values: string[]) =>
  store.query<{ n: number | null }, string[]>(`SELECT ${sql}`).get(...values)?.n ?? null;
const lastUsed = (held: HeldKey) =>
  numberOf('last_used_at_ms AS n FROM keys WHERE id = ?', held.identity.caller.keyId);
const changes = () => numberOf('total_changes() AS n') ?? 0;
const revision = () => numberOf('value AS n FROM revision');

test('the first use in each minute is written once, by however many processes, and moves no revision', () => {
  const unused = key(2);
  const processes = [key(1), key(1), key(1)].map((held) => ({ held, ...createKeyUses(store, clock) }));
  const before = [changes(), revision()];
  for (let ms = 0; ms < 3 * MINUTE; ms += 7_000) {
    for (const { held, note, write } of processes) {
      note(held, NOON + ms);
      write();
    }
  }
  expect([changes() - 3, revision()]).toEqual(before);
  expect([lastUsed(key(1)), lastUsed(unused)]).toEqual([NOON + 2 * MINUTE + 6_000, null]);
});

test('many uses are written in transactions of a hundred, all of them in the end', () => {
  const keys = Array.from({ length: 250 }, (_, n) => key(n));
  const { note, write } = createKeyUses(store, clock);
  for (const held of keys) note(held, NOON);
  const written = [1, 2, 3, 4].map(() => {
    write();
    return keys.filter((held) => lastUsed(held) === NOON).length;
  });
  expect(written).toEqual([100, 200, 250, 250]);
});

test('what cannot be written waits, and is tried again five seconds later', () => {
  const held = key(1);
  const { note, write } = createKeyUses(store, clock);
  const other = opened(join(folder.path, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
  store.run('PRAGMA busy_timeout = 1');
  other.run('BEGIN IMMEDIATE');
  note(held, NOON);
  write();
  expect(lastUsed(held)).toBeNull();
  other.run('ROLLBACK');
  other.close();
  advance(4_999);
  write();
  expect(lastUsed(held)).toBeNull();
  advance(1);
  write();
  expect(lastUsed(held)).toBe(NOON);
});
