import { randomBytes } from 'node:crypto';
import { type AdditionResult, createAccounts } from '../../../deploys/accounts/accounts.ts';
import { type Actor, createAudit } from '../../../deploys/accounts/audit.ts';
import { createKeys } from '../../../deploys/accounts/keys.ts';
import { DEPLOYS_MIGRATIONS } from '../../../deploys/schema.ts';
import type { Plan } from '../../../shared/config/plans.ts';
import { ACCOUNTS_MIGRATIONS } from '../../../shared/keys/schema.ts';
import { createVirtualClock } from '../../fakes/chain-clock.ts';
import { opened } from '../../started/gateway.ts';

export const BY: Actor = { kind: 'operator', userId: 'u1' };

export const plan = (rps: number, credits?: number): Plan => ({
  rps,
  burst: 2 * rps,
  credits,
  batchMax: 100,
  scans: 4,
  inFlight: 16,
});
export const PLANS = new Map<string, Plan>([
  ['trial', plan(100, 1_000)],
  ['large-trial', plan(100, 5_000)],
  ['pro', plan(100)],
]);

/** Accounts, keys and the audit log over one database, and a clock that stands still. */
export function startBooks(path = ':memory:', plans: ReadonlyMap<string, Plan> = PLANS) {
  const store = opened(path, { ...ACCOUNTS_MIGRATIONS, ...DEPLOYS_MIGRATIONS });
  const clock = createVirtualClock();
  const audit = createAudit(store);
  /** What the ledger says that an account has spent. */
  const spent = new Map<number, number>();
  const deps = { store, clock, note: audit.note };
  const accounts = createAccounts({ ...deps, plans, spentOf: (id) => spent.get(id) ?? 0 });
  const keys = createKeys({ ...deps, random: randomBytes });
  return {
    store,
    clock,
    audit,
    spent,
    accounts,
    keys,
    /** A new account, or the outcome of a change of one, which must be good. */
    account: (result: AdditionResult) => {
      if (result.kind !== 'account') throw new Error(result.kind);
      return result.account;
    },
    newKey(account = 'a', name = 'main') {
      const result = keys.create(account, name, BY);
      if (result.kind !== 'created') throw new Error(result.kind);
      return result.made;
    },
    rotated(id: string, graceMs: number) {
      const result = keys.rotate(id, graceMs, BY);
      if (result.kind !== 'rotated') throw new Error(result.kind);
      return result;
    },
    stateOf: (id: string) => keys.find(id)?.state,
    /** What the audit log has, the oldest first. */
    noted: () =>
      audit
        .list({ limit: 100 })
        .toReversed()
        .map(({ action, accountId, subject, detail }) => ({ action, accountId, subject, detail })),
    [Symbol.dispose]: () => store.close(),
  };
}
