import type { Caller } from '../../shared/keys/identify.ts';
import { type Cell, emptyCell } from './cell.ts';

/** The cells in memory. */
export type Cells = Readonly<{
  /** The cell of a caller's method in an hour; a new one when it is not in memory. */
  of(hour: number, caller: Pick<Caller, 'accountId' | 'keyId'>, method: string): Cell;
  /** Says that a cell has changed. */
  touch(cell: Cell): void;
  /** Says that a cell has changed together with the journal. */
  touchWithJournal(cell: Cell): void;
  /** Cells that the ledger does not have as they are. */
  readonly dirty: Set<Cell>;
  /** Those of them that must be written with the journal and not before. */
  readonly withJournal: Set<Cell>;
  /** Drops cells that the ledger has and nobody uses; looks at a part of them and goes on from there the next time. */
  sweep(): void;
  /** Elements that were not counted, because the ledger took no writes for so long that no cell could be dropped. */
  lost(): number;
}>;

/** Turns (seconds) after which a key that is not used is dropped. */
const IDLE_TURNS = 60;
/** Keys looked at in one turn. */
const LOOKED_AT = 10_000;
/** Keys that stay in memory though they are not idle; above it what is written is dropped at once. About 400 bytes each. */
const KEYS_KEPT = 20_000;
/** Above so many keys, one that was called for once leaves as soon as it is written: most of many do not come again. */
const ONCE_KEPT = 2_048;
/** Keys that may wait for a ledger that takes no writes. */
const KEYS_MAX = 200_000;

type Keys = Map<string, Cell[]>;

export function createCells(): Cells {
  const hours = new Map<number, Keys>();
  const dirty = new Set<Cell>();
  const withJournal = new Set<Cell>();
  let keysHeld = 0;
  let turn = 0;
  let lost = 0;
  let looking = everyKey();

  function of(hour: number, { accountId, keyId }: Pick<Caller, 'accountId' | 'keyId'>, method: string): Cell {
    let keys = hours.get(hour);
    if (keys === undefined) hours.set(hour, (keys = new Map()));
    const known = keys.get(keyId);
    if (known !== undefined) for (const cell of known) if (cell.method === method) return cell;
    const cell = emptyCell(hour, accountId, keyId, method);
    if (known !== undefined) known.push(cell);
    else if (keysHeld < KEYS_MAX) {
      keys.set(keyId, [cell]);
      keysHeld++;
    } else {
      cell.isGone = true;
      lost++;
    }
    return cell;
  }

  function touch(cell: Cell): void {
    cell.turn = turn;
    if (cell.isDirty || cell.isGone) return;
    cell.isDirty = true;
    dirty.add(cell);
  }

  function touchWithJournal(cell: Cell): void {
    touch(cell);
    if (cell.isDirty) withJournal.add(cell);
  }

  function* everyKey(): Generator<readonly [number, Keys, string, readonly Cell[]]> {
    for (const [hour, keys] of hours) for (const [keyId, cells] of keys) yield [hour, keys, keyId, cells];
  }

  function sweep(): void {
    turn++;
    for (let looked = 0; looked < LOOKED_AT || keysHeld > KEYS_KEPT; looked++) {
      const { value, done } = looking.next();
      if (done) {
        looking = everyKey();
        return;
      }
      const [hour, keys, keyId, cells] = value;
      const leaves = keysHeld > KEYS_KEPT || (keysHeld > ONCE_KEPT && cells.every(isUsedOnce));
      const idleSince = leaves ? turn : turn - IDLE_TURNS;
      if (cells.some((cell) => cell.isDirty || cell.turn >= idleSince)) continue;
      for (const cell of cells) cell.isGone = true;
      keys.delete(keyId);
      keysHeld--;
      if (keys.size === 0) hours.delete(hour);
    }
  }

  return { of, touch, touchWithJournal, dirty, withJournal, sweep, lost: () => lost };
}

function isUsedOnce({ calls, refused }: Cell): boolean {
  return calls + refused <= 1;
}
