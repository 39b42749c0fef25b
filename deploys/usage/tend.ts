import type { Clock } from '../../shared/clock.ts';
import type { Log } from '../../shared/log.ts';
import type { Store } from '../../shared/store/open.ts';
import { DAY_MS, HOUR_MS } from './calendar.ts';
import { type CellSource, createTakeDrained } from './cell-source.ts';
import { findMismatches, type Mismatch } from './reconcile.ts';
import { createRollUp } from './roll-up.ts';

type Deps = Readonly<{
  /** The ledger, on a connection that writes and on another that reads. */
  ledger: Store;
  reader: Store;
  /** The name of an account, `undefined` when there is none. */
  nameOf(accountId: number): string | undefined;
  /** Told after every reconciliation by how many credits the books differ. */
  noteMismatch(credits: number): void;
  clock: Clock;
  log: Log;
  source?: CellSource;
}>;

/** Between two portions of the roll-up a gateway may write. */
const PAUSE_MS = 50;
/** Waiting for a gateway's write stops everything else here, and a ledger that is busy is tried again. */
const BUSY_MS = 100;
/** In this time what was on its way from other hosts has come. */
const DRAINED_MS = 10_000;

/**
 * Looks after usage at the start and once a day: rolls hours up, and compares cells with the journal. What could not be
 * done is tried again after an hour.
 */
export async function tendUsage(deps: Deps, signal: AbortSignal): Promise<void> {
  const { ledger, clock, source } = deps;
  ledger.run(`PRAGMA busy_timeout = ${BUSY_MS}`);
  const draining = source?.run(createTakeDrained(ledger), signal);
  const rollUp = createRollUp(ledger);
  while (!signal.aborted) {
    const rolled = await attempt('rolling usage up', deps, async () => {
      while (rollUp(clock.now()) && !signal.aborted) await clock.sleep(PAUSE_MS, signal);
    });
    const compared = await attempt('comparing usage with the journal', deps, () => reconcile(deps, signal));
    await clock.sleep(rolled && compared ? DAY_MS : HOUR_MS, signal);
  }
  await draining;
}

async function reconcile(deps: Deps, signal: AbortSignal): Promise<void> {
  const { log, nameOf, noteMismatch } = deps;
  const mismatches = await lastingMismatches(deps, signal);
  if (mismatches === undefined) return;
  noteMismatch(mismatches.reduce((sum, mismatch) => sum + differenceOf(mismatch), 0));
  for (const mismatch of mismatches) {
    const { accountId, node, inCells, inJournal } = mismatch;
    log.error(
      { account: nameOf(accountId) ?? accountId, node, usage: inCells, journal: inJournal },
      'usage and journal differ',
    );
  }
}

/**
 * What is drained of other hosts comes in parts, and the books may differ between two of them: then, and only then, a
 * difference counts that is the same a while later.
 */
async function lastingMismatches({ reader, clock, source }: Deps, signal: AbortSignal) {
  const first = await findMismatches(reader, clock, signal);
  if (first === undefined || first.length === 0 || source === undefined) return first;
  await clock.sleep(DRAINED_MS, signal);
  const second = await findMismatches(reader, clock, signal);
  return second?.filter((now) => first.some((before) => isSame(now, before)));
}

function isSame(now: Mismatch, before: Mismatch): boolean {
  const isOfSame = now.accountId === before.accountId && now.node === before.node;
  return isOfSame && now.inCells - now.inJournal === before.inCells - before.inJournal;
}

function differenceOf({ inCells, inJournal }: Mismatch): number {
  return Math.abs(inCells - inJournal);
}

async function attempt(what: string, { log }: Deps, act: () => Promise<void>): Promise<boolean> {
  try {
    await act();
    return true;
  } catch (error) {
    log.error({ err: error }, `${what} broke`);
    return false;
  }
}
