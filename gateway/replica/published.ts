import type { Clock } from '../../shared/clock.ts';
import {
  ACCOUNTS,
  HEAD,
  KEYS,
  LOG,
  type PublishedAccount,
  type PublishedKey,
  type PublishedRow,
  rowFrom,
  USES,
} from '../../shared/publication.ts';
import { openRedisLink, type RedisClient, type RedisScript } from '../../shared/redis/link.ts';

/** The head of what is published, as `shared/publication.ts` tells. */
export type Head = Readonly<{
  origin: string;
  holder: string;
  epoch: string | undefined;
  isWhole: boolean;
  version: number;
  seq: number;
  termsId: string | undefined;
}>;
export type Terms = Readonly<{ config: number; termsId: string; terms: string }>;

/** Changes of an epoch behind the version `from`. */
export type LoggedChanges = Readonly<{
  epoch: string;
  from: number;
  rows: readonly PublishedRow[];
  upTo: number;
  /** The log no longer has all of them. */
  isGap: boolean;
}>;

export type KeyAndAccount = Readonly<{ key: PublishedKey; account: PublishedAccount }>;

/** Keys as they were at a version of an epoch; one that was not found does not exist if the epoch is whole. */
export type FoundKeys = Readonly<{
  epoch: string;
  version: number;
  isWhole: boolean;
  keys: readonly Readonly<{ id: string; found: KeyAndAccount | 'unreadable' | undefined }>[];
}>;

/** What is published in Redis. Everything rejects while Redis does not answer, or answers what is not ours. */
export type Published = Readonly<{
  /** `undefined`: nobody has published. */
  head(): Promise<Head | undefined>;
  terms(): Promise<Terms | undefined>;
  /** `undefined`: it is another epoch by now. */
  changes(epoch: string, from: number): Promise<LoggedChanges | undefined>;
  find(keyIds: readonly string[]): Promise<FoundKeys>;
  noteUses(uses: readonly (readonly [keyId: string, atMs: number])[]): Promise<void>;
  close(): Promise<void>;
}>;

/** Changes read at once: about 75 KB, and a few milliseconds of SQLite. */
const CHANGES_AT_ONCE = 500;
const DEADLINE_MS = 1_000;
/** Uses that no deploys takes for so long are forgotten. */
const USES_LIFE_MS = 86_400_000;

/** Keys: head, log. Words: epoch, version, how many. Replies the version and the entries behind it, or nothing. */
const CHANGES: RedisScript = {
  keys: 2,
  lua: `
local head = redis.call('HMGET', KEYS[1], 'epoch', 'version')
if head[1] ~= ARGV[1] then return false end
return {head[2] or '0', redis.call('XRANGE', KEYS[2], '(' .. ARGV[2] .. '-0', '+', 'COUNT', ARGV[3])}`,
};

/** Keys: head, keys, accounts. Words: key ids. Replies epoch, version and whole, then of each key its row, its account and the account's row. */
const FIND: RedisScript = {
  keys: 3,
  lua: `
local head = redis.call('HMGET', KEYS[1], 'epoch', 'version', 'whole')
local reply = {head[1] or '', head[2] or '0', head[3] or ''}
for i = 1, #ARGV do
  local key = redis.call('HGET', KEYS[2], ARGV[i]) or ''
  local account = string.match(key, '^%[(%d+),') or ''
  reply[#reply + 1] = key
  reply[#reply + 1] = account
  reply[#reply + 1] = redis.call('HGET', KEYS[3], account) or ''
end
return reply`,
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
type Scripted = RedisClient & Record<'sluiceChanges' | 'sluiceFind' | 'sluiceUse', Script>;

type PublishedOptions = Readonly<{
  url: string;
  clock: Clock;
  /** A number from 0 up to 1. */
  random(): number;
  onWarning(sentence: string): void;
}>;

/** Connects to Redis, whether it is there or not; `undefined` when `url` is no address of one. */
export function openPublished({ url, clock, random, onWarning }: PublishedOptions): Published | undefined {
  const found = openRedisLink({
    url,
    deadlineMs: DEADLINE_MS,
    scripts: { sluiceChanges: CHANGES, sluiceFind: FIND, sluiceUse: USE },
    clock,
    random,
    onWarning,
    // deploys notices what Redis has lost, and begins another epoch.
    onStranger: () => undefined,
  });
  if (found === undefined) return undefined;
  const link = found;

  function client(): Scripted {
    const now = link.client();
    if (now === undefined) throw new Error('Redis does not answer');
    return now as Scripted; // the link was opened with these scripts
  }

  async function fields(...names: readonly string[]): Promise<readonly (string | undefined)[]> {
    return (await client().hmget(HEAD, ...names)).map((value) => value ?? undefined);
  }

  return {
    async head() {
      const [origin, holder, epoch, whole, version, seq, termsId] = await fields(
        'origin',
        'holder',
        'epoch',
        'whole',
        'version',
        'seq',
        'termsId',
      );
      if (origin === undefined || holder === undefined) return undefined;
      const numbers = { version: wholeNumber(version ?? '0'), seq: wholeNumber(seq ?? '0') };
      return { origin, holder, epoch, isWhole: whole === '1', ...numbers, termsId };
    },
    async terms() {
      const [config, termsId, terms] = await fields('config', 'termsId', 'terms');
      if (config === undefined || termsId === undefined || terms === undefined) return undefined;
      return { config: wholeNumber(config), termsId, terms };
    },
    async changes(epoch, from) {
      const reply = await client().sluiceChanges(HEAD, LOG, epoch, from, CHANGES_AT_ONCE);
      return Array.isArray(reply) ? changesIn(epoch, from, reply) : undefined;
    },
    async find(keyIds) {
      return keysIn(keyIds, await client().sluiceFind(HEAD, KEYS, ACCOUNTS, ...keyIds));
    },
    async noteUses(uses) {
      await client().sluiceUse(USES, USES_LIFE_MS, ...uses.flatMap(([keyId, atMs]) => [atMs, keyId]));
    },
    close: () => link.close(),
  };
}

function changesIn(epoch: string, from: number, [version, entries]: readonly unknown[]): LoggedChanges {
  if (!Array.isArray(entries)) throw new Error('Redis gave no entries');
  // As Lua gives them: `[id, [name, text]]`.
  const versions = entries.map(([id]) => wholeNumber(String(id).split('-', 1)[0] ?? ''));
  const isGap = versions.length === 0 || versions.some((each, at) => each !== from + 1 + at);
  if (isGap) return { epoch, from, rows: [], upTo: Math.max(from, wholeNumber(String(version))), isGap };
  const rows = entries.flatMap(([, [name, text]]) => rowFrom(String(name), String(text)) ?? []);
  return { epoch, from, rows, upTo: from + versions.length, isGap };
}

function keysIn(ids: readonly string[], reply: unknown): FoundKeys {
  if (!Array.isArray(reply) || reply.length !== 3 + 3 * ids.length) throw new Error('Redis gave no keys');
  const [epoch = '', version = '', whole, ...texts] = reply.map(String);
  const keys = ids.map((id, at) => ({ id, found: foundIn(id, texts.slice(3 * at, 3 * at + 3)) }));
  return { epoch, version: wholeNumber(version), isWhole: whole === '1', keys };
}

function foundIn(
  id: string,
  [text = '', accountId = '', accountText = '']: readonly string[],
): KeyAndAccount | 'unreadable' | undefined {
  if (text === '') return undefined;
  const [key, account] = [rowFrom(`k${id}`, text), rowFrom(`a${accountId}`, accountText)];
  return key?.kind === 'key' && account?.kind === 'account' ? { key, account } : 'unreadable';
}

function wholeNumber(text: string): number {
  const number = Number(text);
  if (!Number.isSafeInteger(number)) throw new Error('Redis gave no number');
  return number;
}
