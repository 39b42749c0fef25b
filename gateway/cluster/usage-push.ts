import type { Clock } from '../../shared/clock.ts';
import {
  cellField,
  CELLS_CLOCK,
  cellsKey,
  CHANGED_CELLS,
  overCells,
  cellKeyText,
  SHARED_USAGE_LIFE_MS,
  spentKey,
  USAGE_LIFE,
} from '../../shared/ledger/cells.ts';
import {
  inOneCommand,
  openRedisLink,
  type RedisScript,
  type ScriptedClient,
} from '../../shared/redis/link.ts';
import { KEPT_HERE, type Outbox, type UnsentUsage } from './usage-outbox.ts';

/** Of each its counters, and at the end the life in ms. The larger number counts: what comes twice changes nothing. */
const PUT_CELLS: RedisScript = {
  lua: overCells(
    2,
    `
  local field, new = ARGV[at], ARGV[at + 1]
  local old, was, now = redis.call('HGET', key, field), {}, {}
  if old then for n in string.gmatch(old, '%d+') do was[#was + 1] = n end end
  for n in string.gmatch(new, '%d+') do
    local before = was[#now + 1]
    now[#now + 1] = (before and tonumber(before) > tonumber(n)) and before or n
  end
  for i = #now + 1, #was do now[i] = was[i] end
  redis.call('HSET', key, field, table.concat(now, ','))
  redis.call('PEXPIRE', key, ARGV[#ARGV])`,
  ),
};

/** Keys: changed, clock. Words: life in ms, then places. They are taken after all that changed before. */
const NOTE_CELLS: RedisScript = {
  keys: 2,
  lua: `
local at = redis.call('INCR', KEYS[2])
for i = 2, #ARGV do redis.call('ZADD', KEYS[1], at, ARGV[i]) end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[1])
return 'put'`,
};

/** Keys: life. Words: a new name, its life in ms. Replies the name that stands. */
const LIVE: RedisScript = {
  keys: 1,
  lua: `
redis.call('SET', KEYS[1], ARGV[1], 'NX')
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return redis.call('GET', KEYS[1])`,
};

/** Where deploys is: beside this ledger, which it reads itself; elsewhere, where usage must be sent; or not known for sure. */
export type DeploysAt = 'here' | 'elsewhere' | 'unknown';

/** Sends what this host's processes counted to deploys on another host. */
export type Push = NonNullable<ReturnType<typeof openPush>>;

type UsagePushDeps = Readonly<{
  outbox: Outbox;
  url: string;
  clock: Clock;
  random(): number;
  makeId(): string;
  deploysAt(): DeploysAt;
  onWarning(sentence: string): void;
}>;

const PUSH_MS = 1_000;
/** Cells in one round: a few milliseconds of SQLite and of Redis. */
const CELLS_AT_ONCE = 500;
const PAUSE_MS = 5;
const DEADLINE_MS = 1_000;
const HOUR_MS = 3_600_000;
const KEPT_IN_REDIS_HOURS = SHARED_USAGE_LIFE_MS / HOUR_MS;
/** Counts that were sent are kept for 90 days, as deploys keeps its hours. */
const KEPT_HOURS = 90 * 24;

/** The life of no Redis: what was counted meanwhile is sent when one is known. */
const NO_LIFE = 'left';

/** Connects to Redis, whether it is there or not; `undefined` when `url` is no address of one. */
export function openPush({ outbox, url, clock, random, makeId, deploysAt, onWarning }: UsagePushDeps) {
  let strangersServed = 0;
  let tidied = 0;
  const link = openRedisLink({
    url,
    deadlineMs: DEADLINE_MS,
    scripts: { sluicePutCells: PUT_CELLS, sluiceNoteCells: NOTE_CELLS, sluiceLive: LIVE },
    clock,
    random,
    onWarning,
    onStranger: () => undefined, // they are counted
  });
  if (link === undefined) return undefined;
  const { client: clientNow, strangers, refused } = link;

  /** Sends what waits; while Redis or the ledger does not answer, that is on disk for the next round. */
  async function round(signal: AbortSignal): Promise<void> {
    const place = deploysAt();
    try {
      if (place === 'here') await keepHere(signal);
      if (place === 'elsewhere') {
        await send(signal);
        await tidy(signal);
      }
    } catch (error) {
      refused(error);
    }
  }

  /** Deploys reads the ledger itself: nothing waits, and nothing is noted until it is elsewhere. */
  async function keepHere(signal: AbortSignal): Promise<void> {
    if (outbox.life() !== KEPT_HERE) outbox.setLife(KEPT_HERE);
    while (outbox.forget(CELLS_AT_ONCE) && !signal.aborted) await clock.sleep(PAUSE_MS, signal);
  }

  async function send(signal: AbortSignal): Promise<void> {
    // Deploys has gone elsewhere, and knows a copy of this ledger. At once, also while Redis is away: later would be too
    // late for what was counted last.
    if (outbox.life() === KEPT_HERE) {
      outbox.setLife(NO_LIFE);
      await waitAgain(hourNow() - KEPT_IN_REDIS_HOURS, signal);
    }
    const client = clientNow();
    if (client === undefined) return;
    await remember(client, signal);
    for (;;) {
      const rows = outbox.some(CELLS_AT_ONCE);
      if (rows.length === 0) return;
      const groups = Map.groupBy(rows, ({ accountId, hour }) => `${accountId} ${hour}`);
      for (const some of inOneCommand(client, [...groups.values()]))
        await client.sluicePutCells(...wordsOfAll(some));
      await client.sluiceNoteCells(
        CHANGED_CELLS,
        CELLS_CLOCK,
        SHARED_USAGE_LIFE_MS,
        ...rows.map(cellKeyText),
      );
      outbox.sent(rows);
      if (rows.length < CELLS_AT_ONCE || signal.aborted) return;
      await clock.sleep(PAUSE_MS, signal);
    }
  }

  /** Sends again what this Redis may have lost or never knew, as far back as it would have kept it. */
  async function remember(client: ScriptedClient<'sluiceLive'>, signal: AbortSignal): Promise<void> {
    const met = strangers();
    const life = String(await client.sluiceLive(USAGE_LIFE, makeId(), SHARED_USAGE_LIFE_MS));
    const known = outbox.life();
    if (life === known && met === strangersServed) return;
    await waitAgain(known === null ? 0 : hourNow() - KEPT_IN_REDIS_HOURS, signal);
    outbox.setLife(life);
    strangersServed = met;
  }

  /** Has what was counted from an hour on, and everything spent, wait to be sent again. */
  async function waitAgain(fromHour: number, signal: AbortSignal): Promise<void> {
    outbox.spentAgain();
    for (let hour = Math.max(fromHour, outbox.firstHour() ?? hourNow()); hour <= hourNow(); hour++) {
      outbox.again(hour);
      if (signal.aborted) throw new Error('stopped on the way');
      await clock.sleep(PAUSE_MS, signal);
    }
  }

  const hourNow = () => Math.floor(clock.now() / HOUR_MS);

  async function tidy(signal: AbortSignal): Promise<void> {
    const hour = hourNow();
    if (hour === tidied) return;
    while (outbox.prune(hour - KEPT_HOURS) && !signal.aborted) await clock.sleep(PAUSE_MS, signal);
    tidied = hour;
  }

  return {
    /** Sends what waits, again and again until `signal` aborts. Never rejects. */
    async run(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        await round(signal);
        await clock.sleep(PUSH_MS, signal);
      }
    },
    async close(): Promise<void> {
      await round(new AbortController().signal);
      await link.close();
    },
  };
}

/** The words of a command about some groups, each of one account and hour. */
function wordsOfAll(groups: readonly (readonly UnsentUsage[])[]): (string | number)[] {
  const keys = groups.flatMap(([cell]) =>
    cell === undefined ? [] : [spentKey(cell.accountId), cellsKey(cell.accountId, cell.hour)],
  );
  return [keys.length, ...keys, ...groups.flatMap(wordsOf), SHARED_USAGE_LIFE_MS];
}

function wordsOf(group: readonly UnsentUsage[]): (string | number)[] {
  const spent = [...new Map(group.map((cell) => [cell.node, cell.spent]))].flat();
  const cells = group.flatMap((cell) => (cell.counters === null ? [] : [cellField(cell), cell.counters]));
  return [spent.length / 2, cells.length / 2, ...spent, ...cells];
}
