import { type Plan, plansFrom } from './config/plans.ts';
import { type Prices, pricesFrom } from './config/prices.ts';
import type { Problem } from './config/problem.ts';
import { openTable } from './config/table.ts';

/*
 * Accounts, keys, plans and prices as deploys publishes them in Redis. All Redis keys have one hash tag, so that one script may
 * touch several. They hold no key material: an API key appears as its id and its SHA-256, and only in fields and values.
 */

/**
 * A hash. `origin`: whose accounts; `holder`: the start of deploys that publishes; `epoch`: another one whenever Redis may have
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
/** When keys were used last: a sorted set of key ids by Unix milliseconds, until deploys has taken them. */
export const USES = '{sluice:accounts}:uses';

export type PublishedAccount = Readonly<{
  kind: 'account';
  id: number;
  plan: string | null;
  creditsGranted: number | null;
  suspended: boolean;
}>;
/** A key that is not revoked. `hash` is its SHA-256 in hex. */
export type PublishedKey = Readonly<{
  kind: 'key';
  id: string;
  hash: string;
  accountId: number;
  expiresAtMs: number | null;
}>;
/** One account or key as it is published. `gone`: it is revoked, or no longer in the database at all. */
export type PublishedRow =
  PublishedAccount | PublishedKey | Readonly<{ kind: 'gone'; subject: 'account' | 'key'; id: string }>;

/** The name and the text of a row. A name is `a` or `k` and an id; the text of what is gone is empty. */
export function rowTexts(row: PublishedRow): readonly [name: string, text: string] {
  switch (row.kind) {
    case 'account':
      return [`a${row.id}`, JSON.stringify([row.plan, row.creditsGranted, row.suspended ? 1 : 0])];
    case 'key':
      // Scripts find the account by the number at the beginning.
      return [`k${row.id}`, JSON.stringify([row.accountId, row.hash, row.expiresAtMs])];
    case 'gone':
      return [`${row.subject === 'account' ? 'a' : 'k'}${row.id}`, ''];
  }
}

/** Reads such texts; `undefined` when a later version wrote them, or nobody of ours. */
export function rowFrom(name: string, text: string): PublishedRow | undefined {
  const [subject, id] = [name.startsWith('a') ? 'account' : 'key', name.slice(1)] as const;
  if (!/^[ak]./.test(name)) return undefined;
  if (text === '') return { kind: 'gone', subject, id };
  const [first, second, third] = membersOf(text);
  if (subject === 'key') {
    if (!isNumber(first) || typeof second !== 'string' || !(third === null || isNumber(third)))
      return undefined;
    return { kind: 'key', id, hash: second, accountId: first, expiresAtMs: third };
  }
  if (
    !isNumber(Number(id)) ||
    !(first === null || typeof first === 'string') ||
    !(second === null || isNumber(second))
  )
    return undefined;
  return { kind: 'account', id: Number(id), plan: first, creditsGranted: second, suspended: third === 1 };
}

function membersOf(text: string): readonly unknown[] {
  try {
    const members: unknown = JSON.parse(text);
    return Array.isArray(members) ? members : [];
  } catch {
    return [];
  }
}

function isNumber(member: unknown): member is number {
  return Number.isSafeInteger(member);
}

/** What calls are let in by and what they cost. */
export type PublishedTerms = Readonly<{ plans: ReadonlyMap<string, Plan>; prices: Prices }>;

/** Plans and prices as the tables of a config, in one spelling: equal terms give equal texts. */
export function termsText({ plans, prices }: PublishedTerms): string {
  const rows = inOrder(plans).map(([name, { rps, burst, credits, batchMax, scans }]) => [
    name,
    { rps, burst, ...(credits === undefined ? {} : { credits }), max_batch: batchMax, scans },
  ]);
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
    const root = openTable(JSON.parse(text), '', {}, problems);
    const terms = { plans: plansFrom(root), prices: pricesFrom(root) };
    return problems.length === 0 ? terms : undefined;
  } catch {
    return undefined;
  }
}
