import type { Clock } from '../../shared/clock.ts';
import {
  ACCOUNTS,
  ENDED,
  HEAD,
  KEYS,
  LEASE,
  LOG,
  type PublishedRow,
  ROTATED,
  SEEN,
  USES,
} from '../../shared/publication.ts';
import { openRedisLink, type RedisClient, type RedisScript } from '../../shared/redis/link.ts';
import { PORTION } from './changes.ts';

/**
 * The start of deploys that Redis names, and its generation, or a later one that gateways have seen; empty and 0 when nothing was
 * published.
 */
type Holder = Readonly<{ holder: string; generation: number }>;

/**
 * The answer of Redis when the right to publish is looked at or claimed. `free`: nobody has it, or another holder than expected had it
 * meanwhile. `later`: Redis has, or had when gateways saw it, a revision, a turn or a generation that the database has not, or has the
 * generation that it would take over as. `seen`: the latest revision that gateways saw.
 */
export type ClaimReply =
  | (Holder &
      Readonly<{
        kind: 'claimed';
        epoch: string;
        puts: number;
        isWhole: boolean;
        seq: number;
        config: number;
        termsId: string;
        turns: number;
        seen: number;
      }>)
  | (Holder & Readonly<{ kind: 'free' | 'later' }>)
  /** `endsMs`: when the lease ends, by the clock of Redis. */
  | (Holder & Readonly<{ kind: 'held'; endsMs: number }>)
  | Readonly<{ kind: 'other-origin'; origin: string }>
  /** A figure is no whole number from zero on: somebody else wrote it. */
  | Readonly<{ kind: 'unreadable'; figure: string }>;

/**
 * The figures that the database knows to be published, and under which generation it claims over which holder. `take-over` claims over any of
 * an earlier generation.
 */
export type Claiming = Readonly<{
  how: 'look' | 'claim' | 'take-over';
  announced: number;
  turns: number;
  generation: number;
  over: string;
}>;

/** Rows to be written in an epoch, where `puts` writes were made before; `seq` is the revision up to which all changes are in then. */
export type Put = Readonly<{
  epoch: string;
  puts: number;
  seq: number;
  /** Which rows go to the log too, from which other hosts take changes of the keys that they serve. */
  log: 'all' | 'those that differ' | 'none';
  /** With this write all accounts and keys are in Redis. */
  isWhole: boolean;
  rows: readonly PublishedRow[];
}>;

/** The publication in Redis. Rejects while Redis does not answer; `false` and `undefined`: another publishes, or Redis lost data. */
export type RedisHead = NonNullable<ReturnType<typeof openRedisHead>>;

type RedisHeadOptions = Readonly<{
  url: string;
  origin: string;
  /** This start of deploys: the token in `publishers`. */
  holder: string;
  clock: Clock;
  /** A number from 0 up to 1. */
  random(): number;
  onWarning(sentence: string): void;
}>;

/** How long the right lasts without being renewed: what a deploys that was killed costs its successor. */
export const LEASE_MS = 5_000;
const DEADLINE_MS = 1_000;
/** Changes that a host may miss without reading all the keys that it serves again; about 100 bytes each. */
export const LOG_MAX = 10_000;

/** Ends that are kept of revoked keys, and of rotated ones, about 100 bytes each: the oldest are of keys that no backup in use still has. */
export const ENDED_MAX = 100_000;

/** Keys: head, lease, seen. Words: origin, holder, lease in ms, then the members of `Claiming`. Looks at the right to publish, takes or renews it. */
const CLAIM: RedisScript = {
  keys: 3,
  lua: `
local names = {'origin', 'holder', 'generation', 'epoch', 'puts', 'whole', 'seq', 'config', 'termsId', 'turns', 'version'}
local head = redis.call('HMGET', KEYS[1], unpack(names))
for _, name in ipairs({'generation', 'seq'}) do
  names[#names + 1] = 'seen ' .. name
  head[#names] = redis.call('HGET', KEYS[3], name .. ' ' .. ARGV[1])
end
for i = 1, #names do head[i] = head[i] or '' end
local origin, holder = head[1], head[2]
if origin ~= '' and origin ~= ARGV[1] then return {'other-origin', origin} end
-- Lua reads 'inf', 'nan' and '0x1' as numbers too.
for _, i in ipairs({3, 5, 7, 8, 10, 11, 12, 13}) do
  local isNumber = string.match(head[i], '^%d*$') and (tonumber(head[i]) or 0) <= ${Number.MAX_SAFE_INTEGER}
  if not isNumber then return {'unreadable', names[i], string.sub(head[i], 1, 40)} end
end
local function latest(a, b) return math.max(tonumber(head[a]) or 0, tonumber(head[b]) or 0) end
local generation = latest(3, 12)
local lease = redis.call('GET', KEYS[2])
local turns = math.max(tonumber(head[10]) or 0, tonumber(ARGV[6]))
if ARGV[4] == 'take-over' then
  if holder ~= ARGV[2] and generation >= tonumber(ARGV[7]) then return {'later', holder, generation} end
else
  local isLater = latest(7, 13) > tonumber(ARGV[5]) or turns > tonumber(ARGV[6]) or generation > tonumber(ARGV[7])
  -- One without an end was copied from another Redis.
  local isHeld = lease and lease ~= ARGV[2] and redis.call('PTTL', KEYS[2]) >= 0
  local isFree = ARGV[4] == 'look' or (holder ~= '' and holder ~= ARGV[2] and holder ~= ARGV[8])
  local kind = isLater and 'later' or isHeld and 'held' or isFree and 'free'
  if kind == 'held' then
    local now = redis.call('TIME')
    return {kind, holder, generation, now[1] * 1000 + math.floor(now[2] / 1000) + redis.call('PTTL', KEYS[2])}
  end
  if kind then return {kind, holder, generation} end
end
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
redis.call('HSET', KEYS[1], 'origin', ARGV[1], 'holder', ARGV[2], 'generation', ARGV[7], 'turns', turns)
return {'claimed', ARGV[2], ARGV[7], unpack(head, 4)}`,
};

/** Keys: head, lease. Words: holder, lease in ms, turns. Renews the right for a turn of deliveries. */
const TURN: RedisScript = {
  keys: 2,
  lua: `
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 'lost' end
redis.call('PEXPIRE', KEYS[2], ARGV[2])
redis.call('HSET', KEYS[1], 'turns', ARGV[3])
return 'put'`,
};

/** Keys: head, lease, log. Words: holder, fields and values. A new epoch begins with an empty log. */
const WRITE: RedisScript = {
  keys: 3,
  lua: `
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 'lost' end
if ARGV[2] == 'epoch' then redis.call('DEL', KEYS[3]) end
redis.call('HSET', KEYS[1], unpack(ARGV, 2))
return 'put'`,
};

/** Words: holder, epoch, puts, seq, what to log, `1` with the last rows; then names, texts and ends. Replies the puts of the epoch, which grow by a change. */
const PUT: RedisScript = {
  keys: 7,
  lua: `
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 'lost' end
local head = redis.call('HMGET', KEYS[1], 'epoch', 'puts', 'version', 'seq', 'whole')
if head[1] ~= ARGV[2] or head[2] ~= ARGV[3] then return 'lost' end
local version, puts, isChanged = tonumber(head[3]), tonumber(head[2]), false
for i = 7, #ARGV, 3 do
  local name, text, ends = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local rows, id = string.sub(name, 1, 1) == 'k' and KEYS[3] or KEYS[4], string.sub(name, 2)
  local differs = (redis.call('HGET', rows, id) or '') ~= text
  if differs and text == '' then redis.call('HDEL', rows, id) elseif differs then redis.call('HSET', rows, id, text) end
  -- A set for each: rotated keys end later than any was revoked, and would push those out.
  if ends ~= '' and text == '' then redis.call('ZADD', KEYS[6], 'LT', ends, 'r' .. id) end
  if ends ~= '' and text ~= '' then redis.call('ZADD', KEYS[7], 'LT', ends, 'x' .. id) end
  local isLogged = ARGV[5] == 'all' or (differs and ARGV[5] ~= 'none')
  if isLogged then
    version = version + 1
    local entry = {'XADD', KEYS[5], 'MAXLEN', '~', ${LOG_MAX}, version .. '-0', name, text}
    local added = redis.pcall(unpack(entry))
    if type(added) == 'table' and added.err then
      -- A log that is not of this epoch: hosts take a gap in it for what it is.
      redis.call('DEL', KEYS[5])
      redis.call(unpack(entry))
    end
  end
  isChanged = isChanged or differs or isLogged
end
if tonumber(ARGV[4]) > tonumber(head[4] or '0') then
  redis.call('HSET', KEYS[1], 'seq', ARGV[4])
  isChanged = true
end
if ARGV[6] == '1' and head[5] ~= '1' then
  redis.call('HSET', KEYS[1], 'whole', 1)
  isChanged = true
end
for i = 6, 7 do redis.call('ZREMRANGEBYRANK', KEYS[i], 0, -${ENDED_MAX + 1}) end
if isChanged then puts = puts + 1 end
redis.call('HSET', KEYS[1], 'version', version, 'puts', puts)
return puts`,
};

/** Keys: lease. Words: holder. Lets the next one publish at once. */
const LEAVE: RedisScript = {
  keys: 1,
  lua: `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`,
};

/** Of a sorted set of what waits to be taken. Keys: the set. Words: how many. Replies members, each with its score. */
export const SHOW_MEMBERS: RedisScript = {
  keys: 1,
  lua: `return redis.call('ZRANGE', KEYS[1], 0, ARGV[1] - 1, 'WITHSCORES')`,
};

/** Keys: the set. Words: members, each with the score that was taken. One that has another score by now stays. */
export const DROP_MEMBERS: RedisScript = {
  keys: 1,
  lua: `
for i = 1, #ARGV, 2 do
  if redis.call('ZSCORE', KEYS[1], ARGV[i]) == ARGV[i + 1] then redis.call('ZREM', KEYS[1], ARGV[i]) end
end
return 'put'`,
};

const SCRIPTS = {
  sluiceClaim: CLAIM,
  sluiceTurn: TURN,
  sluiceWrite: WRITE,
  sluicePut: PUT,
  sluiceLeave: LEAVE,
  sluiceShowUses: SHOW_MEMBERS,
  sluiceDropUses: DROP_MEMBERS,
};

export type Script = (...words: readonly (string | number)[]) => Promise<unknown>;
type HeadRedis = RedisClient & Record<keyof typeof SCRIPTS, Script>;

/** Connects to Redis, whether it is there or not; `undefined` when `url` is no address of one. */
export function openRedisHead({ url, clock, random, onWarning, origin, holder }: RedisHeadOptions) {
  const link = openRedisLink({
    url,
    deadlineMs: DEADLINE_MS,
    scripts: SCRIPTS,
    clock,
    random,
    onWarning,
    // Every claim says what is there, and so shows a Redis that has less than before.
    onStranger: () => undefined,
  });
  if (link === undefined) return undefined;

  const call = async (act: (client: HeadRedis) => Promise<unknown>): Promise<unknown> => {
    const client = link.client();
    if (client === undefined) throw new Error('Redis does not answer');
    try {
      return await act(client as HeadRedis); // the link was opened with these scripts
    } catch (error) {
      link.refused(error);
      throw error;
    }
  };

  async function write(...head: readonly (string | number)[]): Promise<boolean> {
    return (await call((redis) => redis.sluiceWrite(HEAD, LEASE, LOG, holder, ...head))) === 'put';
  }

  return {
    /** This start of deploys, as `publishers` names it. */
    holder,
    isConnected: () => link.client() !== undefined,
    /** Takes or renews the right, or only sees whether it can be taken. */
    async claim({ how, announced, turns: done, generation, over }: Claiming): Promise<ClaimReply> {
      const words = [origin, holder, LEASE_MS, how, announced, done, generation, over];
      return claimIn(await call((redis) => redis.sluiceClaim(HEAD, LEASE, SEEN, ...words)));
    },
    /** Renews the right for a turn of deliveries, of which so many were; `false`: another has it, or nobody. */
    turn: async (turns: number): Promise<boolean> =>
      (await call((redis) => redis.sluiceTurn(HEAD, LEASE, holder, LEASE_MS, turns))) === 'put',
    /** Keys that are revoked or end, as the sets name them, with when; from a place on in the order of their ends. */
    ended: async (set: typeof ENDED | typeof ROTATED, from: number): Promise<readonly Pair[]> =>
      pairsIn(await call((redis) => redis.zrange(set, `${from}`, `${from + PORTION - 1}`, 'WITHSCORES'))),
    /** Begins an epoch over whatever rows are there. */
    begin: (epoch: string) => write('epoch', epoch, 'version', 0, 'puts', 0, 'whole', 0),
    terms: (config: number, termsId: string, terms: string) =>
      write('config', config, 'termsId', termsId, 'terms', terms),
    /** Gives the puts of the epoch with this one. */
    async put({ epoch, puts, seq, log, isWhole, rows }: Put): Promise<number | undefined> {
      const texts = rows.flatMap(([name, text, endsAtMs = '']) => [name, text, endsAtMs]);
      const words = [holder, epoch, puts, seq, log, isWhole ? 1 : 0, ...texts];
      const reply = await call((redis) =>
        redis.sluicePut(HEAD, LEASE, KEYS, ACCOUNTS, LOG, ENDED, ROTATED, ...words),
      );
      return typeof reply === 'number' ? reply : undefined;
    },
    /** Names of some rows that Redis has; the next cursor is `0` after the last. */
    async scan(of: 'keys' | 'accounts', cursor: string): Promise<[cursor: string, names: string[]]> {
      const [rows, prefix] = of === 'keys' ? [KEYS, 'k'] : [ACCOUNTS, 'a'];
      const reply = await call((redis) => redis.hscan(rows, cursor, 'COUNT', PORTION));
      const [next, members]: unknown[] = Array.isArray(reply) ? reply : [];
      return [String(next), pairsIn(members).map(([id]) => `${prefix}${id}`)];
    },
    /** Ids of keys, each with when it was used last in Unix milliseconds. */
    uses: async (most: number): Promise<readonly Pair[]> =>
      pairsIn(await call((redis) => redis.sluiceShowUses(USES, most))),
    dropUses: (uses: readonly Pair[]) => call((redis) => redis.sluiceDropUses(USES, ...uses.flat())),
    /** Gives the right up, if it can be said at once, and ends the connection. */
    async close(): Promise<void> {
      await call((redis) => redis.sluiceLeave(LEASE, holder)).catch(() => undefined);
      await link.close();
    },
  };
}

function claimIn(reply: unknown): ClaimReply {
  const [kind, first = '', second, ...rest] = textsIn(reply);
  if (kind === 'other-origin') return { kind, origin: first };
  if (kind === 'unreadable') return { kind, figure: `${first} ${JSON.stringify(second)}` };
  const seen = { holder: first, generation: Number(second) };
  if (kind === 'held') return { kind, ...seen, endsMs: Number(rest[0]) };
  if (kind === 'free' || kind === 'later') return { kind, ...seen };
  const [epoch = '', , whole, , , termsId = ''] = rest;
  const [puts = 0, seq = 0, config = 0, turns = 0, latest = 0] = [1, 3, 4, 6, 9].map((at) =>
    Number(rest[at]),
  );
  const numbers = { puts, seq, config, turns, seen: latest };
  return { kind: 'claimed', ...seen, epoch, isWhole: whole === '1', termsId, ...numbers };
}

/** The texts of a reply that must be a list. */
export function textsIn(reply: unknown): readonly string[] {
  if (!Array.isArray(reply)) throw new Error('Redis gave no list');
  return reply.map(String);
}

/** A member of a set with its score, or a field with its value. */
type Pair = readonly [name: string, value: string];

/** A reply that lists one after the other. */
export function pairsIn(reply: unknown): readonly Pair[] {
  const texts = textsIn(reply);
  return texts.flatMap((name, at) => (at % 2 === 0 ? [[name, texts[at + 1] ?? ''] as const] : []));
}

/** How long a command waits for a connection to Redis, in milliseconds. */
const CONNECTED_MS = 1_000;
const LOOK_MS = 20;

type LookOptions = Pick<RedisHeadOptions, 'url' | 'origin' | 'clock' | 'random'>;

/** Asks Redis for a command, of whatever state of the database; `undefined`: it does not answer. */
async function lookOnce(options: LookOptions): Promise<ClaimReply | undefined> {
  const head = openRedisHead({ ...options, holder: 'nobody', onWarning: () => undefined });
  const { clock } = options;
  const endMs = clock.monotonic() + CONNECTED_MS;
  const never = new AbortController().signal;
  try {
    while (head?.isConnected() === false && clock.monotonic() < endMs) await clock.sleep(LOOK_MS, never);
    const all = Number.MAX_SAFE_INTEGER;
    return await head?.claim({ how: 'look', announced: all, turns: all, generation: all, over: '' });
  } catch {
    return undefined;
  } finally {
    await head?.close();
  }
}

/** Why gateways on other hosts do not hear of a change now, as a clause; `undefined` when a deploys publishes it. */
export async function whyUnpublished(options: LookOptions): Promise<string | undefined> {
  const found = await lookOnce(options);
  if (found === undefined) return 'Redis does not answer';
  if (found.kind === 'other-origin') return 'Redis has the accounts of another database';
  if (found.kind === 'unreadable') return 'Redis has a figure that deploys did not write';
  return found.kind === 'held' ? undefined : 'no deploys publishes accounts';
}

/** The generation that is published of a database or of a copy of it; `undefined` when Redis does not tell. */
export async function publishedGeneration(options: LookOptions): Promise<number | undefined> {
  const found = await lookOnce(options);
  return found !== undefined && 'generation' in found ? found.generation : undefined;
}
