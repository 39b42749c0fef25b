import { DROP_MEMBERS, SHOW_MEMBERS } from '../store/taken-members.ts';
import type { Clock } from '../../shared/clock.ts';
import { CHANGED_CELLS, placeFrom } from '../../shared/ledger/shared-usage.ts';
import { inOneCommand } from '../../shared/redis/in-one-command.ts';
import { openRedisLink, type RedisClient } from '../../shared/redis/link.ts';
import type { CellSource, Drained } from './cell-source.ts';
import {
  cellsIn,
  FORGET_CELLS,
  forgetCells,
  groupsOf,
  READ_CELLS,
  readCells,
  spentIn,
  textsIn,
} from './shared-cells.ts';

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

type Script = (...words: readonly (string | number)[]) => Promise<unknown>;
type Scripted = RedisClient &
  Record<'sluiceShowCells' | 'sluiceDropCells' | 'sluiceReadCells' | 'sluiceForgetCells', Script>;

/** The cells that gateways on all hosts put into Redis; `undefined` when `url` is no address of one. */
export function openRedisCells({ url, clock, random, isOwn, onWarning }: Deps): CellSource | undefined {
  const found = openRedisLink({
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
      const together = inOneCommand(client, groupsOf(places));
      const read = await Promise.all(together.map((some) => readCells(scripted, some)));
      const all = read.flat();
      take({ cells: all.flatMap(cellsIn), spent: all.flatMap(spentIn) });
      await Promise.all(read.map((some) => forgetCells(scripted, some)));
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
