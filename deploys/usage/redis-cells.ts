import type { Clock } from '../../shared/clock.ts';
import {
  CELL_COLUMNS,
  CELL_COUNTER_NAMES,
  CELL_COUNTERS,
  type CellCounter,
  cellField,
  type CellKey,
  cellsKey,
  CHANGED_CELLS,
  counterAt,
  NO_HOUR,
  overCells,
  cellKeyFrom,
  spentKey,
} from '../../shared/ledger/cells.ts';
import { inOneCommand, openRedisLink, type RedisClient, type RedisScript } from '../../shared/redis/link.ts';
import type { Store } from '../../shared/store/open.ts';
import { DROP_MEMBERS, pairsIn, type Script, SHOW_MEMBERS, textsIn } from '../accounts/redis-head.ts';

/** Counts of one node in one hour of one key's method, as absolute values that only grow. */
export type HourCell = CellKey & Readonly<Record<CellCounter, number>>;

/** Credits that one node has charged to an account's allowance and given back, ever: the journal's two counters. */
type NodeSpent = Readonly<{ accountId: number; node: string; charged: number; refunded: number }>;

/** Counts of nodes. An account's `spent` is of the same instant as the cells that it came with: they are compared to the unit. */
export type Drained = Readonly<{ cells: readonly HourCell[]; spent: readonly NodeSpent[] }>;

/** Where cells of gateways on other hosts come from; those on this host write the ledger themselves. */
export type CellSource = NonNullable<ReturnType<typeof openRedisCells>>;

/** Writes what was drained into the ledger, all or none; the larger of two values stands, whatever comes twice or late. */
export function createTakeDrained(ledger: Store): (drained: Drained) => void {
  const counters = CELL_COUNTER_NAMES.map((name) => `$${name}`).join(', ');
  const larger = Object.values(CELL_COUNTERS).map(
    (column) => `${column} = max(${column}, excluded.${column})`,
  );
  const putCell = ledger.prepare<null, HourCell>(`
    INSERT INTO usage_hours (${CELL_COLUMNS.join(', ')})
    VALUES ($hour, $accountId, $keyId, $method, $node, ${counters})
    ON CONFLICT DO UPDATE SET ${larger.join(', ')}`);
  const putSpent = ledger.prepare<null, NodeSpent>(`
    INSERT INTO spent (account_id, node, charged, refunded) VALUES ($accountId, $node, $charged, $refunded)
    ON CONFLICT DO UPDATE SET charged = max(charged, excluded.charged), refunded = max(refunded, excluded.refunded)`);
  const take = ledger.transaction(({ cells, spent }: Drained) => {
    for (const cell of cells) putCell.run({ ...cell });
    for (const each of spent) putSpent.run({ ...each });
  });
  return take.immediate;
}

type RedisCellsDeps = Readonly<{
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

type CellsRedis = RedisClient &
  Record<'sluiceShowCells' | 'sluiceDropCells' | 'sluiceReadCells' | 'sluiceForgetCells', Script>;

/** The cells that gateways on all hosts put into Redis; `undefined` when `url` is no address of one. */
export function openRedisCells({ url, clock, random, isOwn, onWarning }: RedisCellsDeps) {
  const link = openRedisLink({
    url,
    deadlineMs: DEADLINE_MS,
    scripts: {
      sluiceShowCells: SHOW_MEMBERS,
      sluiceDropCells: DROP_MEMBERS,
      sluiceReadCells: READ_CELLS,
      sluiceForgetCells: FORGET_CELLS,
    },
    clock,
    random,
    onWarning,
    // What Redis has lost and was not taken the gateways put there again.
    onStranger: () => undefined,
  });
  if (link === undefined) return undefined;

  /** Takes what has changed, and then has Redis forget it. */
  const drain = async (take: (drained: Drained) => void, signal: AbortSignal): Promise<void> => {
    while (isOwn() && !signal.aborted) {
      const client = link.client();
      if (client === undefined) return;
      const scripted = client as CellsRedis; // the link was opened with these scripts
      const changed = pairsIn(await scripted.sluiceShowCells(CHANGED_CELLS, CELLS_AT_ONCE));
      if (changed.length === 0) return;
      const together = inOneCommand(client, groupsOf(changed.flatMap(([text]) => cellKeyFrom(text) ?? [])));
      const read = await Promise.all(
        together.map(async (groups) => ({
          groups,
          values: textsIn(await scripted.sluiceReadCells(...wordsOf(groups))),
        })),
      );
      take(drainedFrom(together.flat(), read.flatMap(({ values }) => values).values()));
      await Promise.all(
        read.map(({ groups, values }) => scripted.sluiceForgetCells(...wordsOf(groups, values))),
      );
      await scripted.sluiceDropCells(CHANGED_CELLS, ...changed.flat());
      if (changed.length < CELLS_AT_ONCE) return;
      await clock.sleep(PAUSE_MS, signal);
    }
  };

  return {
    /** Hands over what changed until `signal` aborts: perhaps twice, late or out of order, and again when `take` throws. Never rejects. */
    async run(take: (drained: Drained) => void, signal: AbortSignal): Promise<void> {
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
    },
  };
}

/** Replies the values of nodes and fields, nothing for what is not there; one instant. */
const READ_CELLS: RedisScript = {
  lua: overCells(1, `values[#values + 1] = redis.call('HGET', key, ARGV[at]) or ''`),
};

/** Removes each value that was taken, unless it has changed meanwhile: a later message has the whole cell. */
const FORGET_CELLS: RedisScript = {
  lua: overCells(
    2,
    `if redis.call('HGET', key, ARGV[at]) == ARGV[at + 1] then redis.call('HDEL', key, ARGV[at]) end`,
  ),
};

/** Cells to be read of one account and hour. */
type Group = Readonly<{
  accountId: number;
  hour: number;
  nodes: readonly string[];
  cells: readonly CellKey[];
}>;

/** Those of one account and hour together, for they are in one key of Redis. */
function groupsOf(keys: readonly CellKey[]): readonly Group[] {
  const groups = Map.groupBy(keys, ({ accountId, hour }) => `${accountId} ${hour}`);
  return [...groups.values()].map((group) => {
    const [{ accountId, hour }] = group as [CellKey]; // no group is empty
    const nodes = [...new Set(group.map(({ node }) => node))];
    return { accountId, hour, nodes, cells: hour === NO_HOUR ? [] : group };
  });
}

/** Keys and words of READ_CELLS; with the values that were read, of FORGET_CELLS. */
function wordsOf(groups: readonly Group[], values?: readonly string[]): readonly (string | number)[] {
  const keys = groups.flatMap(({ accountId, hour }) => [spentKey(accountId), cellsKey(accountId, hour)]);
  let at = 0;
  const words = groups.flatMap(({ nodes, cells }) => {
    const fields = [...nodes, ...cells.map(cellField)];
    const named = values === undefined ? fields : fields.flatMap((field) => [field, values[at++] ?? '']);
    return [nodes.length, cells.length, ...named];
  });
  return [keys.length, ...keys, ...words];
}

/** Reads the values of groups: of each first those of its nodes, then those of its cells, empty for what is not there. */
function drainedFrom(groups: readonly Group[], values: Iterator<string>): Drained {
  const [cells, spent]: [HourCell[], NodeSpent[]] = [[], []];
  const next = () => values.next().value ?? '';
  for (const group of groups) {
    for (const node of group.nodes) {
      const text = next();
      const [charged, refunded] = [counterAt(text, 0), counterAt(text, 1)];
      if (text !== '') spent.push({ accountId: group.accountId, node, charged, refunded });
    }
    for (const key of group.cells) {
      const text = next();
      const counters = CELL_COUNTER_NAMES.map((name, at) => [name, counterAt(text, at)] as const);
      // The list has every counter of a cell, and nothing else.
      const counts = Object.fromEntries(counters) as Record<CellCounter, number>;
      if (text !== '') cells.push({ ...key, ...counts });
    }
  }
  return { cells, spent };
}
