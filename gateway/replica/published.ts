import type { Clock } from '../../shared/clock.ts';
import { ACCOUNTS, HEAD, KEYS, LOG, type PublishedRow, USES } from '../../shared/publication.ts';
import { openRedisLink, type RedisScript } from '../../shared/redis/link.ts';

/** What is published in Redis. Everything rejects while Redis does not answer, or answers what is not ours. */
export type Published = NonNullable<ReturnType<typeof openPublished>>;

/** Changes read at once: about 75 KB, and a few milliseconds of SQLite. */
const CHANGES_AT_ONCE = 500;
const DEADLINE_MS = 1_000;
/** Uses that no deploys takes for so long are forgotten. */
const USES_LIFE_MS = 86_400_000;

/** Keys: head, log. Words: epoch, position and terms of the host, how many changes. Replies the members of `News` in their order up to `from`, and changes. */
const NEWS: RedisScript = {
  keys: 2,
  lua: `
local head = redis.call('HMGET', KEYS[1], 'origin', 'holder', 'epoch', 'whole', 'version', 'seq', 'config', 'termsId')
for i = 1, 8 do head[i] = head[i] or '' end
head[9] = head[8] ~= ARGV[3] and redis.call('HGET', KEYS[1], 'terms') or ''
head[10] = head[3] == ARGV[1] and ARGV[2] or '0'
local last = head[5] == '' and '0' or head[5]
head[11] = redis.call('XRANGE', KEYS[2], '(' .. head[10] .. '-0', last .. '-0', 'COUNT', ARGV[4])
return head`,
};

/** Keys: head, keys, accounts. Words: key ids. Replies epoch, version and whole, then of each key its text, its account's id and text. */
const FIND: RedisScript = {
  keys: 3,
  lua: `
local head = redis.call('HMGET', KEYS[1], 'epoch', 'version', 'whole')
local reply = {head[1] or '', head[2] or '', head[3] or ''}
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
    /** For a host that has the changes of `epoch` up to `position`, and these terms; `undefined`: nothing was published. */
    async news(epoch: string, position: number, termsId: string): Promise<News | undefined> {
      return newsIn(await client().sluiceNews(HEAD, LOG, epoch, position, termsId, CHANGES_AT_ONCE));
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

/** The head of what is published, as in `shared/publication.ts`, with what is new in it for a host. */
export type News = NonNullable<ReturnType<typeof newsIn>>;

function newsIn(reply: unknown) {
  const texts = listIn(reply);
  const [origin = '', holder = '', epoch = '', whole, , , , termsId = '', terms = ''] = texts.map(String);
  if (origin === '' || holder === '') return undefined;
  const [version = 0, seq = 0, config = 0, from = 0] = [4, 5, 6, 9].map((at) => numberIn(texts[at]));
  const entries = listIn(texts[10]).map(listIn); // each an id, and a list of its name and text
  const isGap =
    version > from &&
    (entries.length === 0 || entries.some(([id], at) => numberIn(String(id).slice(0, -2)) !== from + 1 + at));
  const changes = entries.map(([, row]) => listIn(row)).map(([name, text]) => rowOf(name, text));
  const rows = isGap ? [] : changes;
  return {
    origin,
    holder,
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
  };
}

/** Keys, each with its account, as they were at a version of an epoch; one that is not there does not exist if the epoch is whole. */
export type FoundKeys = ReturnType<typeof keysIn>;

function keysIn(ids: readonly string[], reply: unknown) {
  const texts = listIn(reply).map(String);
  if (texts.length !== 3 + 3 * ids.length) throw new Error('Redis gave not all keys');
  const [epoch = '', version, whole] = texts;
  const keys = ids.map((id, at) => {
    const [text, account, accountText] = texts.slice(3 + 3 * at);
    return { key: rowOf(`k${id}`, text), account: rowOf(`a${account}`, accountText) };
  });
  return { epoch, version: numberIn(version), isWhole: whole === '1', keys };
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
