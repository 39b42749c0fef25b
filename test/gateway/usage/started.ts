import { join } from 'node:path';
import { createCharging } from '../../../gateway/limits/charge.ts';
import { createJournal } from '../../../gateway/limits/journal.ts';
import { LEDGER_MIGRATIONS } from '../../../gateway/ledger.ts';
import { createUsage } from '../../../gateway/usage/usage.ts';
import { type ApiKey, hashOf, keyIdOf } from '../../../shared/keys/api-key.ts';
import type { Plan } from '../../../shared/config/plans.ts';
import type { Caller } from '../../../shared/keys/source.ts';
import type { Store } from '../../../shared/store/open.ts';
import { opened, temporaryFolder } from '../../started/gateway.ts';
import { createVirtualClock } from '../virtual-clock.ts';

export const HOUR_MS = 3_600_000;

export const planOf = (rps: number, burst = rps, credits?: number, scans = 1): Plan => ({
  rps,
  burst,
  credits,
  scans,
  batchMax: 100,
  inFlight: 16,
});
export const LIMITED = planOf(1e6, 1e6, 1_000);
export const UNLIMITED = planOf(1e6);

export const callerOf = (accountId: number, creditsGranted?: number): Caller => ({
  keyId: keyIdOf(hashOf(`key of account ${accountId}` as ApiKey)), // only its hash is used
  accountId,
  plan: 'trial',
  creditsGranted,
});
export const CALLER = callerOf(1);

const NOTHING = {
  calls: 0,
  credits: 0,
  refunded: 0,
  errors: 0,
  bytes_out: 0,
  refused: 0,
  charged: 0,
  returned: 0,
};

/** A row of `usage_hours`, without the hour and the node, that counted nothing but what is given. */
export const rowOf = (method: string, counted: Partial<typeof NOTHING>) => ({
  account_id: 1,
  key_id: CALLER.keyId,
  method,
  ...NOTHING,
  ...counted,
});

export const openLedger = ({ path }: { readonly path: string }) =>
  opened(join(path, 'ledger.db'), LEDGER_MIGRATIONS);

/** Writes a cell as a gateway does; everything that is counted was charged. */
export function writeCell(
  ledger: Store,
  cell: Readonly<{ hour: number; node: string; calls: number; account?: number; method?: string }>,
): void {
  const { hour, node, calls, account = 1, method = 'getSlot' } = cell;
  ledger.run(
    `INSERT INTO usage_hours (hour, account_id, key_id, method, node, calls, credits, refunded, errors, bytes_out, refused, charged, returned)
     VALUES (?1, ?2, 'k', ?3, ?4, ?5, 0, 0, 0, 0, 0, ?5, 0) ON CONFLICT DO UPDATE SET calls = ?5, charged = ?5`,
    [hour, account, method, node, calls],
  );
}

/**
 * Usage with a journal and charging over a ledger in a folder. A turn of the journal ends when the test says so, or by
 * `soon`. `again` is the process started anew, after its machine was.
 */
export function startUsage({
  folder = temporaryFolder(),
  node = 'n1',
  soon = undefined as ((run: () => void) => void) | undefined,
  time = createVirtualClock(500_000 * HOUR_MS),
  bootMs = 0,
} = {}) {
  const clock = { ...time.clock, monotonic: () => time.clock.monotonic() - bootMs };
  const ledger = openLedger(folder);
  const lost: number[] = [];
  const usage = createUsage({
    ledger,
    node,
    clock,
    onLost: (elements) => void lost.push(elements),
  });
  const waiting: (() => void)[] = [];
  const journal = createJournal(
    ledger,
    node,
    soon ?? ((run) => void waiting.push(run)),
    usage.inSameTransaction,
  );
  const charging = createCharging(journal, ledger, clock);

  return {
    clock,
    advance: time.advance,
    folder,
    ledger,
    waiting,
    usage,
    journal,
    charging,
    /** What was said of elements that were not counted. */
    lost,
    /** Ends the turn of the event loop, as the journal sees it. */
    endTurn: () => waiting.splice(0).forEach((run) => run()),
    /** Charges calls of these methods at one credit each. */
    charge(plan: Plan, ...methods: string[]) {
      const counted = usage.begin(
        CALLER,
        methods.map((method) => ({ label: method, credits: 1 })),
      );
      const charge = charging.charge(CALLER, plan, {
        calls: methods.length,
        credits: methods.length,
        usageHook: counted,
      });
      return { counted, charge };
    },
    rows: (hour?: number) =>
      ledger
        .query<ReturnType<typeof rowOf>, [number | null]>(
          `SELECT account_id, key_id, method, calls, credits, refunded, errors, bytes_out, refused, charged, returned
           FROM usage_hours WHERE hour = coalesce(?, hour) ORDER BY hour, account_id, method`,
        )
        .all(hour ?? null),
    /** What the journal says that account 1 spent. */
    spent: () =>
      ledger
        .query<{ n: number }, []>('SELECT sum(charged - refunded) AS n FROM spent WHERE account_id = 1')
        .get()?.n,
    again() {
      ledger.close();
      return startUsage({ folder, node, soon, time, bootMs: time.clock.monotonic() - 5 });
    },
    /** Makes writes to a table fail until the returned function is called. */
    break(table: 'spent' | 'usage_hours' | 'buckets') {
      const fail = "BEGIN SELECT RAISE(ABORT, 'disk full'); END";
      ledger.run(`CREATE TRIGGER broken BEFORE INSERT ON ${table} ${fail}`);
      return () => void ledger.run('DROP TRIGGER broken');
    },
    [Symbol.dispose]() {
      ledger.close();
      folder[Symbol.dispose]();
    },
  };
}
