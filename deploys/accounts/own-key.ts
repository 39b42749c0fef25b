import type { Clock } from '../../shared/clock.ts';
import { type Config, gatewayUrl } from '../../shared/config/config.ts';
import type { Plan } from '../../shared/config/plans.ts';
import { Secret } from '../../shared/secret.ts';
import type { Store } from '../../shared/store/open.ts';
import { WATCHER } from './account-row.ts';
import { createAccounts } from './accounts.ts';
import type { Actor } from './audit.ts';
import { createKeys } from './keys.ts';

const KEY_NAME = 'issued at start';
const STARTED: Actor = { kind: 'command-line' };

type OwnKeyDeps = Readonly<{
  store: Store;
  plans: ReadonlyMap<string, Plan>;
  clock: Clock;
  random: (bytes: number) => Uint8Array;
}>;

/** Whether the watcher reads through this config's own gateway without a key: deploys can issue itself one. */
export function needsOwnKey(config: Pick<Config, 'gateway' | 'deploys' | 'backends'>): boolean {
  const { gateway, deploys, backends } = config;
  const [url, ...others] = deploys.rpcUrls;
  return (
    deploys.rpcKey === undefined &&
    backends.length > 0 &&
    others.length === 0 &&
    url?.href === gatewayUrl(gateway).href
  );
}

/** `name-taken`: a user has an account with the watcher's name, which stays as it is. */
type IssuedKey = { readonly kind: 'issued'; readonly key: Secret } | { readonly kind: 'name-taken' };

/** Issues the watcher a new key at each start, because keys are stored as hashes alone, and revokes every earlier one. */
export function issueOwnKey({ store, plans, clock, random }: OwnKeyDeps): IssuedKey {
  // What was spent matters for credits alone, which are not read here; and what the app does at every start is not
  // written to the audit log.
  const note = () => undefined;
  const accounts = createAccounts({ store, plans, spentOf: () => 0, clock, note });
  const keys = createKeys({ store, clock, random, note });
  const issue = store.transaction((): IssuedKey => {
    const plan = watcherPlan(plans);
    const own = accounts.own(WATCHER, plan, STARTED);
    if (own.kind === 'name-taken') return { kind: own.kind };
    if (own.kind !== 'account') throw new Error(`the watcher's account could not be made: ${own.kind}`);
    if (own.account.plan !== plan) accounts.set(WATCHER, { plan: { name: plan } }, STARTED);
    for (const { id, state } of keys.list(WATCHER)) if (state !== 'revoked') keys.revoke(id, STARTED);
    const created = keys.create(WATCHER, KEY_NAME, STARTED);
    if (created.kind !== 'created') throw new Error(`the watcher's key could not be made: ${created.kind}`);
    return { kind: 'issued', key: new Secret(created.made.key) };
  });
  return issue.immediate();
}

/** The plan with the highest rate of those without a credit limit, or of all when each has one. */
export function watcherPlan(plans: ReadonlyMap<string, Plan>): string | undefined {
  const all = [...plans].sort(([, a], [, b]) => b.rps - a.rps);
  const [name] = all.find(([, { credits }]) => credits === undefined) ?? all[0] ?? [];
  return name;
}
