import { inFlightBy, type Plan, plansFrom, type Prices, pricesFrom } from './config/plans.ts';
import { type Problem, Table } from './config/table.ts';

/*
 * Accounts, keys, plans and prices as deploys publishes them in Redis. All Redis keys have one hash tag, so that one script may
 * touch several. They hold no key material: an API key appears as its id and its SHA-256, and only in fields and values.
 */

/**
 * A hash. `origin`: whose accounts; `holder`: the start of deploys that publishes; `generation`: how many have; `turns`: turns of
 * deliveries up to now; `epoch`: another one whenever Redis may have
 * lost something; `whole`: 1 as soon as all accounts and keys were written in this epoch; `version`: entries ever written to the
 * log of this epoch; `puts`: writes in this epoch; `seq`: the revision of the accounts database up to which all changes are in;
 * `config`, `termsId`, `terms`: plans and prices.
 */
export const HEAD = '{sluice:accounts}:head';
/** Held by the one deploys that publishes, for a few seconds at a time. */
export const LEASE = '{sluice:accounts}:lease';
/** Hashes: key id -> row, account id -> row. */
export const KEYS = '{sluice:accounts}:keys';
export const ACCOUNTS = '{sluice:accounts}:accounts';
/** A stream of the latest changes, under ids `VERSION-0` without gaps; the oldest are dropped. */
export const LOG = '{sluice:accounts}:log';
/**
 * When keys end: sorted sets by Unix milliseconds, of `r` and the ids of revoked keys, and of `x` and those of rotated ones, which
 * alone expire. A database that takes over, and knows of less, ends them too. The oldest are dropped.
 */
export const ENDED = '{sluice:accounts}:ended';
export const ROTATED = '{sluice:accounts}:rotated';
/**
 * A hash: the latest `generation ORIGIN` and `seq ORIGIN` that gateways had seen of a database when they found less in the head. So
 * an older copy of it is known for one although Redis has lost what the later one published.
 */
export const SEEN = '{sluice:accounts}:seen';
/** When keys were used last: a sorted set of key ids by Unix milliseconds, until deploys has taken them. */
export const USES = '{sluice:accounts}:uses';

/**
 * A row of an account or key: its name, which is `a` or `k` and the id, and its text, which is empty for one that is not there.
 * `endsAtMs`: of a revoked or expiring key.
 */
export type PublishedRow = readonly [name: string, text: string, endsAtMs?: number];

type PublishedAccount = Readonly<{ plan: string | null; creditsGranted: number | null; suspended: boolean }>;
/** A key that is not revoked. `hash` is its SHA-256 in hex. */
export type PublishedKey = Readonly<{ hash: string; accountId: number; expiresAtMs: number | null }>;

export function accountText({ plan, creditsGranted, suspended }: PublishedAccount): string {
  return JSON.stringify([plan, creditsGranted, suspended ? 1 : 0]);
}

/** Reads such a text; `undefined` when it is none of ours, or a later version's. */
export function accountFrom(text: string): PublishedAccount | undefined {
  const [plan, credits, suspended] = membersOf(text);
  if ((plan !== null && typeof plan !== 'string') || (credits !== null && !isWhole(credits)))
    return undefined;
  return { plan, creditsGranted: credits, suspended: suspended === 1 };
}

/** The account comes first, where scripts find it. */
export function keyText({ accountId, hash, expiresAtMs }: PublishedKey): string {
  return JSON.stringify([accountId, hash, expiresAtMs]);
}

export function keyFrom(text: string): PublishedKey | undefined {
  const [accountId, hash, expires] = membersOf(text);
  if (!isWhole(accountId) || typeof hash !== 'string' || !(expires === null || isWhole(expires)))
    return undefined;
  return { accountId, hash, expiresAtMs: expires };
}

function membersOf(text: string): readonly unknown[] {
  try {
    return [JSON.parse(text)].flat();
  } catch {
    return [];
  }
}

function isWhole(member: unknown): member is number {
  return Number.isSafeInteger(member);
}

/** The plans by which calls are let in, and their prices. */
export type PublishedTerms = Readonly<{ plans: ReadonlyMap<string, Plan>; prices: Prices }>;

/** Plans and prices as the tables of a config, in one spelling: equal terms give equal texts. */
export function termsText({ plans, prices }: PublishedTerms): string {
  const rows = inOrder(plans).map(([name, plan]): [string, object] => {
    const { rps, burst, credits, batchMax, scans, inFlight, sendFanout = 1 } = plan;
    const limited = credits === undefined ? {} : { credits };
    // A gateway that does not know a key refuses the terms whole, so it is left out where it says nothing.
    const own = inFlight === inFlightBy(burst) ? {} : { in_flight: inFlight };
    const fanned = sendFanout === 1 ? {} : { send_fanout: sendFanout };
    return [name, { rps, burst, ...limited, max_batch: batchMax, scans, ...own, ...fanned }];
  });
  const methods = Object.fromEntries(inOrder(prices.methods));
  return JSON.stringify({ plans: Object.fromEntries(rows), credits: { default: prices.default, methods } });
}

function inOrder<T>(rows: ReadonlyMap<string, T>): [string, T][] {
  return [...rows].toSorted(([a], [b]) => (a < b ? -1 : 1));
}

/** Reads such a text by the rules of a config; `undefined` when it breaks them, as a later version's may. */
export function termsFrom(text: string): PublishedTerms | undefined {
  const problems: Problem[] = [];
  try {
    const root = new Table(JSON.parse(text), '', { env: {}, problems });
    const terms = { plans: plansFrom(root), prices: pricesFrom(root) };
    return problems.length === 0 ? terms : undefined;
  } catch {
    return undefined;
  }
}
