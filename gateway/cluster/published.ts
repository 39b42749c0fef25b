import type { Clock } from '../../shared/clock.ts';
import { ACCOUNTS, HEAD, KEYS, LOG, type PublishedRow, SEEN, USES } from '../../shared/publication.ts';
import { openRedisLink, type RedisScript } from '../../shared/redis/link.ts';

/** The publication in Redis. Everything rejects while Redis does not answer, or answers what is not ours. */
export type Published = NonNullable<ReturnType<typeof openPublished>>;

/** Changes read at once: about 75 KB, and a few milliseconds of SQLite. */
const CHANGES_AT_ONCE = 500;
const DEADLINE_MS = 1_000;
/** Uses that no deploys takes for so long are forgotten. */
const USES_LIFE_MS = 86_400_000;

/**
 * Keys: head, log, seen. Words: how many changes, then of the host epoch, position, terms, origin, generation and revision, which are
 * noted when Redis has less. Replies the members of `News` in their order up to `from`, changes, and what hosts had noted of this origin.
 */
const NEWS: RedisScript = {
  keys: 3,
  lua: `
local names = {'origin', 'holder', 'generation', 'epoch', 'whole', 'version', 'seq', 'config', 'termsId'}
local head = redis.call('HMGET', KEYS[1], unpack(names))
for i = 1, #names do head[i] = head[i] or '' end
head[10] = head[9] ~= ARGV[4] and redis.call('HGET', KEYS[1], 'terms') or ''
head[11] = head[4] == ARGV[2] and ARGV[3] or '0'
local last = head[6] == '' and '0' or head[6]
head[12] = redis.call('XRANGE', KEYS[2], '(' .. head[11] .. '-0', last .. '-0', 'COUNT', ARGV[1])
for i, name in ipairs({'generation ', 'seq '}) do head[12 + i] = redis.call('HGET', KEYS[3], name .. head[1]) or '' end
if ARGV[5] == '' or (head[1] ~= '' and head[1] ~= ARGV[5]) then return head end
for name, figures in pairs({generation = {head[3], ARGV[6]}, seq = {head[7], ARGV[7]}}) do
  local field, seen = name .. ' ' .. ARGV[5], tonumber(figures[2])
  local isLess = seen > (tonumber(figures[1]) or 0) and seen > (tonumber(redis.call('HGET', KEYS[3], field)) or 0)
  if isLess then redis.call('HSET', KEYS[3], field, figures[2]) end
end
return head`,
};

/** Keys: head, keys, accounts. Words: key ids. Replies epoch, version, whole, generation and revision, then of each key its text, its account's id and text. */
const FIND: RedisScript = {
  keys: 3,
  lua: `
local reply = redis.call('HMGET', KEYS[1], 'epoch', 'version', 'whole', 'generation', 'seq')
for i = 1, 5 do reply[i] = reply[i] or '' end
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

/** Connects to Redis, whether it is there or not; `undefined` when `url` is no address of one. `random` gives a number from 0 up to 1. */
export function openPublished(url: string, clock: Clock, random: () => number) {
  const link = openRedisLink({
    url,
    deadlineMs: DEADLINE_MS,
    scripts: { sluiceNews: NEWS, sluiceFind: FIND, sluiceUse: USE },
    clock,
    random,
    // The store of shared limits warns of the server; here it would be reported again.
    onWarning: () => undefined,
    // deploys notices what Redis has lost, and begins another epoch.
    onStranger: () => undefined,
  });
  if (link === undefined) return undefined;
  const client = () => {
    const now = link.client();
    if (now === undefined) throw new Error('Redis does not answer');
    return now;
  };

  return {
    /** Reads the news for a host, which tells what it has; `undefined`: nothing was published. */
    async news({
      epoch,
      position,
      terms_id,
      origin,
      generation,
      seen,
    }: HostState): Promise<News | undefined> {
      const words = [CHANGES_AT_ONCE, epoch, position, terms_id, origin ?? '', generation, seen];
      return newsIn(await client().sluiceNews(HEAD, LOG, SEEN, ...words));
    },
    async find(keyIds: readonly string[]): Promise<FoundKeys> {
      return keysIn(keyIds, await client().sluiceFind(HEAD, KEYS, ACCOUNTS, ...keyIds));
    },
    async noteUses(uses: readonly (readonly [keyId: string, atMs: number])[]): Promise<void> {
      await client().sluiceUse(USES, USES_LIFE_MS, ...uses.flatMap(([keyId, atMs]) => [atMs, keyId]));
    },
    close: () => link.close(),
  };
}

/** The changes of `epoch` up to `position`, these terms, and the latest that was ever seen of `origin`. */
type HostState = Readonly<{
  epoch: string;
  position: number;
  terms_id: string;
  origin: string | null;
  generation: number;
  seen: number;
}>;

/** The head of what is published, as in `shared/publication.ts`, with what is new in it for a host. */
export type News = NonNullable<ReturnType<typeof newsIn>>;

function newsIn(reply: unknown) {
  const texts = listIn(reply);
  const [origin = '', holder = '', , epoch = '', whole, , , , termsId = '', terms = ''] = texts.map(String);
  if (origin === '' || holder === '') return undefined;
  const numbers = [2, 5, 6, 7, 10, 12, 13].map((at) => numberIn(texts[at]));
  const [generation = 0, version = 0, seq = 0, config = 0, from = 0, notedGeneration = 0, notedSeq = 0] =
    numbers;
  const entries = listIn(texts[11]).map(listIn); // each an id, and a list of its name and text
  const isGap =
    version > from &&
    (entries.length === 0 || entries.some(([id], at) => numberIn(String(id).slice(0, -2)) !== from + 1 + at));
  const changes = entries.map(([, row]) => listIn(row)).map(([name, text]) => rowOf(name, text));
  const rows = isGap ? [] : changes;
  return {
    origin,
    holder,
    generation,
    /** Empty until anything was written. */
    epoch,
    isWhole: whole === '1',
    version,
    seq,
    config,
    termsId,
    /** Empty when they are those that the host has. */
    terms,
    /** Changes behind the version `from`, up to `upTo`. */
    from,
    rows,
    upTo: isGap ? version : from + rows.length,
    /** The log no longer has all changes from there. */
    isGap,
    /** The latest that some host had seen when Redis had less. */
    noted: { generation: notedGeneration, seen: notedSeq },
  };
}

/** Keys, each with its account, as they were at a version of an epoch; one that is not there does not exist if the epoch is whole. */
export type FoundKeys = ReturnType<typeof keysIn>;

function keysIn(ids: readonly string[], reply: unknown) {
  const texts = listIn(reply).map(String);
  if (texts.length !== 5 + 3 * ids.length) throw new Error('Redis gave not all keys');
  const [epoch = '', version, whole, generation, seq] = texts;
  const keys = ids.map((id, at) => {
    const [text, account, accountText] = texts.slice(5 + 3 * at);
    return { key: rowOf(`k${id}`, text), account: rowOf(`a${account}`, accountText) };
  });
  const numbers = { version: numberIn(version), generation: numberIn(generation), seq: numberIn(seq) };
  return { epoch, ...numbers, isWhole: whole === '1', keys };
}

function rowOf(name: unknown, text: unknown): PublishedRow {
  return [String(name), String(text)];
}

function listIn(reply: unknown): readonly unknown[] {
  if (!Array.isArray(reply)) throw new Error('Redis gave no list');
  return reply;
}

function numberIn(reply: unknown): number {
  const number = Number(reply);
  if (!Number.isSafeInteger(number)) throw new Error('Redis gave no number');
  return number;
}
