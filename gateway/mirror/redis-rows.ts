import type { Clock } from '../../shared/clock.ts';
import { HEAD, rowsOf, USES } from '../../shared/publication/names.ts';
import {
  openRedisLink,
  type RedisClient,
  type RedisLink,
  type RedisScript,
} from '../../shared/redis/link.ts';
import type { ReadRows } from './mirror.ts';

/** What Redis says is published. */
export type Head = Readonly<{
  origin: string;
  holder: string;
  /** `undefined` until a first publication is whole. */
  epoch: string | undefined;
  seq: number;
  termsId: string | undefined;
  /** Keys that are revoked ahead of their rows, as `revokedFrom` reads them. */
  revoked: string | undefined;
}>;

/** The published rows in Redis, for a mirror. Everything rejects while Redis does not answer. */
export type RedisRows = Readonly<{
  /** `undefined`: nobody has published. */
  head(): Promise<Head | undefined>;
  terms(): Promise<Readonly<{ config: number; termsId: string; terms: string }> | undefined>;
  /** Rows of an epoch behind a revision; `undefined` when the epoch is no longer the one that is read. */
  after(epoch: string, from: number): Promise<ReadRows | undefined>;
  noteUses(uses: readonly (readonly [keyId: string, atMs: number])[]): Promise<void>;
  close(): Promise<void>;
}>;

/** Rows read at once: about 75 KB, and a few milliseconds of SQLite. */
export const ROWS_AT_ONCE = 500;
const DEADLINE_MS = 1_000;
/** Uses that no deploys takes for so long are forgotten. */
const USES_LIFE_MS = 86_400_000;

/** Keys: head, rows. Words: epoch, revision, how many. Replies the epoch's seq and its entries, or nothing. */
const READ: RedisScript = {
  keys: 2,
  lua: `
local head = redis.call('HMGET', KEYS[1], 'epoch', 'seq')
if head[1] ~= ARGV[1] then return false end
return {head[2], redis.call('XRANGE', KEYS[2], '(' .. ARGV[2] .. '-0', '+', 'COUNT', ARGV[3])}`,
};

/** Keys: uses. Words: life in ms, then instants, each with its key id. */
const USE: RedisScript = {
  keys: 1,
  lua: `
for i = 2, #ARGV, 2 do redis.call('ZADD', KEYS[1], 'GT', ARGV[i], ARGV[i + 1]) end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 'put'`,
};

type Script = (...words: readonly (string | number)[]) => Promise<unknown>;
type Scripted = RedisClient & Record<'sluiceRead' | 'sluiceUse', Script>;

export type RedisRowsOptions = Readonly<{
  url: string;
  clock: Clock;
  /** A number from 0 up to 1. */
  random(): number;
  onWarning(sentence: string): void;
}>;

/** Opens the way to Redis, whether it is there or not; `undefined` when `url` is no address of one. */
export function openRedisRows({ url, clock, random, onWarning }: RedisRowsOptions): RedisRows | undefined {
  const scripts = { sluiceRead: READ, sluiceUse: USE };
  const link = openRedisLink({
    url,
    deadlineMs: DEADLINE_MS,
    scripts,
    clock,
    random,
    onWarning,
    // What Redis has lost is published again, and then read like any other change.
    onStranger: () => undefined,
  });
  return link && over(link);
}

function over(link: RedisLink): RedisRows {
  function client(): Scripted {
    const now = link.client();
    if (now === undefined) throw new Error('Redis does not answer');
    return now as Scripted; // the link was opened with these scripts
  }

  /** Those of the head's fields that are there. */
  async function fields(...names: string[]): Promise<Readonly<Record<string, string | undefined>>> {
    const values = await client().hmget(HEAD, ...names);
    return Object.fromEntries(names.map((name, at) => [name, values[at] ?? undefined]));
  }

  return {
    async head() {
      const { origin, holder, epoch, seq, termsId, revoked } = await fields(
        'origin',
        'holder',
        'epoch',
        'seq',
        'termsId',
        'revoked',
      );
      if (origin === undefined || holder === undefined) return undefined;
      return { origin, holder, epoch, seq: Number(seq ?? 0), termsId, revoked };
    },
    async terms() {
      const { config, termsId, terms } = await fields('config', 'termsId', 'terms');
      if (config === undefined || termsId === undefined || terms === undefined) return undefined;
      return { config: Number(config), termsId, terms };
    },
    async after(epoch, from) {
      const reply = await client().sluiceRead(HEAD, rowsOf(epoch), epoch, from, ROWS_AT_ONCE);
      if (!Array.isArray(reply)) return undefined;
      const [seq, entries]: unknown[] = reply;
      const rows = rowsIn(entries);
      const isLast = rows.length < ROWS_AT_ONCE;
      const upTo = Math.max(from, isLast ? Number(seq) : (rows.at(-1)?.seq ?? from));
      return { epoch, from, rows, upTo, isLast };
    },
    async noteUses(uses) {
      await client().sluiceUse(USES, USES_LIFE_MS, ...uses.flatMap(([keyId, atMs]) => [atMs, keyId]));
    },
    close: () => link.close(),
  };
}

/** Entries of a stream as Lua gives them: `[id, [field, value]]`. */
function rowsIn(entries: unknown): readonly Readonly<{ seq: number; text: string }>[] {
  if (!Array.isArray(entries)) throw new Error('Redis gave no rows');
  return entries.map(([id, fields]) => ({
    seq: Number(String(id).split('-', 1)[0]),
    text: String(Array.isArray(fields) ? fields[1] : ''),
  }));
}
