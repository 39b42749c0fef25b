import { DROP_MEMBERS, SHOW_MEMBERS } from '../store/taken-members.ts';
import type { Clock } from '../../shared/clock.ts';
import { type CellCounter, CELL_COUNTER_NAMES } from '../../shared/ledger/counters.ts';
import {
  cellField,
  type CellPlace,
  cellsKey,
  CHANGED_CELLS,
  counterAt,
  NO_HOUR,
  placeFrom,
  spentKey,
} from '../../shared/ledger/shared-usage.ts';
import { openRedisLink, type RedisClient, type RedisScript } from '../../shared/redis/link.ts';
import type { CellSource, Drained, HourCell, NodeSpent } from './cell-source.ts';

type Deps = Readonly<{
  url: string;
  clock: Clock;
  /** A number from 0 up to 1. */
  random(): number;
  /** Whether the accounts that gateways count are this database's: what is not its own is left for others. */
  isOwn(): boolean;
  onWarning(sentence: string): void;
}>;

const DRAIN_MS = 1_000;
/** Cells in one round: a few milliseconds of SQLite. */
const CELLS_AT_ONCE = 500;
const PAUSE_MS = 20;
const DEADLINE_MS = 1_000;

/** Keys: spent, cells. Words: how many nodes, nodes, fields. Replies the values, nothing for what is not there; one instant. */
const READ_CELLS: RedisScript = {
  keys: 2,
  lua: `
local values, nodes = {}, tonumber(ARGV[1])
for i = 2, #ARGV do values[i - 1] = redis.call('HGET', i < 2 + nodes and KEYS[1] or KEYS[2], ARGV[i]) or '' end
return values`,
};

type Script = (...words: readonly (string | number)[]) => Promise<unknown>;
type Scripted = RedisClient & Record<'sluiceShowCells' | 'sluiceDropCells' | 'sluiceReadCells', Script>;

/** The cells that gateways on all hosts put into Redis; `undefined` when `url` is no address of one. */
export function openRedisCells({ url, clock, random, isOwn, onWarning }: Deps): CellSource | undefined {
  const found = openRedisLink({
    url,
    deadlineMs: DEADLINE_MS,
    scripts: { sluiceShowCells: SHOW_MEMBERS, sluiceDropCells: DROP_MEMBERS, sluiceReadCells: READ_CELLS },
    clock,
    random,
    onWarning,
    // What Redis has lost and was not taken the gateways put there again.
    onStranger: () => undefined,
  });
  if (found === undefined) return undefined;
  const link = found;

  /** Takes what has changed, and then forgets that it has. */
  async function drain(take: (drained: Drained) => void, signal: AbortSignal): Promise<void> {
    while (isOwn() && !signal.aborted) {
      const client = link.client();
      if (client === undefined) return;
      const scripted = client as Scripted; // the link was opened with these scripts
      const words = textsIn(await scripted.sluiceShowCells(CHANGED_CELLS, CELLS_AT_ONCE));
      if (words.length === 0) return;
      const places = words.flatMap((word, at) => (at % 2 === 0 ? (placeFrom(word) ?? []) : []));
      const groups = [...Map.groupBy(places, ({ accountId, hour }) => `${accountId} ${hour}`).values()];
      const parts = await Promise.all(groups.map((group) => read(scripted, group)));
      take({ cells: parts.flatMap(({ cells }) => cells), spent: parts.flatMap(({ spent }) => spent) });
      await scripted.sluiceDropCells(CHANGED_CELLS, ...words);
      if (words.length < 2 * CELLS_AT_ONCE) return;
      await clock.sleep(PAUSE_MS, signal);
    }
  }

  async function run(take: (drained: Drained) => void, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await drain(take, signal);
      } catch (error) {
        // Redis or the ledger does not answer; it is all taken the next time.
        link.refused(error);
      }
      await clock.sleep(DRAIN_MS, signal);
    }
    await link.close();
  }

  return { run };
}

async function read(client: Scripted, group: readonly CellPlace[]): Promise<Drained> {
  const [{ accountId, hour }] = group as readonly [CellPlace]; // no group is empty
  const nodes = [...new Set(group.map(({ node }) => node))];
  const cells = hour === NO_HOUR ? [] : group;
  const keys = [spentKey(accountId), cellsKey(accountId, hour)];
  const values = textsIn(
    await client.sluiceReadCells(...keys, nodes.length, ...nodes, ...cells.map(cellField)),
  );
  const spent = nodes.map((node, at): [string, string] => [node, values[at] ?? '']);
  const counted = cells.map((place, at): [CellPlace, string] => [place, values[nodes.length + at] ?? '']);
  return {
    cells: counted.flatMap(([place, text]) => (text === '' ? [] : [cellFrom(place, text)])),
    spent: spent.flatMap(([node, text]) => (text === '' ? [] : [spentFrom(accountId, node, text)])),
  };
}

function cellFrom(place: CellPlace, text: string): HourCell {
  const counters = CELL_COUNTER_NAMES.map((name, at) => [name, counterAt(text, at)] as const);
  // The list has every counter of a cell, and nothing else.
  return { ...place, ...(Object.fromEntries(counters) as Record<CellCounter, number>) };
}

function spentFrom(accountId: number, node: string, text: string): NodeSpent {
  return { accountId, node, charged: counterAt(text, 0), refunded: counterAt(text, 1) };
}

function textsIn(reply: unknown): readonly string[] {
  if (!Array.isArray(reply)) throw new Error('Redis gave no list');
  return reply.map(String);
}
