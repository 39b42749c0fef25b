import type { Clock } from '../../shared/clock.ts';
import type { Log } from '../../shared/log.ts';
import type { Health } from '../health/health.ts';
import { type Deploy, deploysBetween, type DeploySlots, type Reading, seenAfter } from './change.ts';
import { within } from '../health/outbound.ts';
import type { Floor, ReadPrograms, ReadingOutcome } from './read.ts';
import { unwritableReason } from '../../shared/store/private.ts';
import type { WatchedProgram } from '../../shared/watched.ts';

/** The last good reading of this run. `checkedAtMs` is when it began: whatever was final then is in it. */
export type Latest = Readonly<{ reading: Reading; checkedAtMs: number }>;
export type Unread =
  Exclude<ReadingOutcome, { kind: 'read' | 'other-chain' }> | { readonly kind: 'broken'; error: unknown };
/** The last good reading, and the trouble of the newest one if it failed. */
type WatchState = Readonly<{ latest: Latest | undefined; trouble: Unread | undefined }>;

type WatcherDeps = Readonly<{
  read: ReadPrograms;
  /**
   * Stores a reading and the events of its deploys in one transaction; throws when it cannot. `held-back`: it cannot be said yet
   * whether they are to become events here, so the next reading must find them again.
   */
  save(latest: Latest, deploys: readonly Deploy[], genesisHash: string | undefined): 'saved' | 'held-back';
  /** Looks up what the reading still lacks, until `signal` aborts. */
  fillBlockTimes(reading: Reading, signal: AbortSignal): Promise<void>;
  noteRead(latest: Latest, deploys: readonly Deploy[], reasons: readonly string[]): void;
  noteUnread(unread: Unread): void;
  noteBroken(error: unknown): void;
  clock: Clock;
  pollMs: number;
}>;
type Taken = Extract<ReadingOutcome, { kind: 'read' | 'other-chain' | 'implausible' }>;

const READING_MS_MAX = 30_000;
/** A chain that stays behind the last reading for this long was reset: start over, as after a restart. */
const BEHIND_MS_MAX = 600_000;
/** Consecutive readings in which every backend reports most programs missing; the last of them is accepted. */
const IMPLAUSIBLE_MAX = 3;

/** Reads all programs at once and then every `pollMs` until its signal aborts (docs/spec.md 3). A failed reading changes nothing. */
export function createWatcher(deps: WatcherDeps) {
  const { clock, pollMs } = deps;
  let state: WatchState = { latest: undefined, trouble: undefined };
  let floor: Floor | undefined;
  let behindSinceMs: number | undefined;
  let implausible = 0;

  async function run(signal: AbortSignal): Promise<void> {
    const firstStartMs = clock.monotonic();
    for (let failures = 0; !signal.aborted;) {
      const latest = await readOnce(signal);
      // An implausible reading is not retried within seconds, which would tell nothing new.
      failures = latest === undefined && implausible === 0 ? failures + 1 : 0;
      const startMs = nextStartMs(pollMs, firstStartMs, clock.monotonic(), failures);
      if (latest !== undefined) await fillUntil(startMs, latest.reading, signal);
      await clock.sleep(startMs - clock.monotonic(), signal);
    }
  }

  async function readOnce(signal: AbortSignal): Promise<Latest | undefined> {
    const checkedAtMs = clock.now();
    try {
      const outcome = await within(clock, READING_MS_MAX, signal, (over) => deps.read(floor, over));
      if (signal.aborted) return undefined;
      if (outcome.kind === 'timed-out') return keepLast({ kind: 'failed', reasons: [TOO_SLOW] });
      const { value } = outcome;
      if (value.kind === 'read') return take(value, floor, checkedAtMs);
      if (value.kind === 'other-chain') return take(value, undefined, checkedAtMs);
      if (value.kind === 'implausible' && implausible + 1 >= IMPLAUSIBLE_MAX)
        return take(value, floor, checkedAtMs);
      return keepLast(value);
    } catch (error) {
      return keepLast({ kind: 'broken', error });
    }
  }

  /** `before` is absent for the first reading of a chain: it makes no events, as after a restart (docs/spec.md 4.1). */
  function take(outcome: Taken, before: Floor | undefined, checkedAtMs: number): Latest {
    const latest: Latest = { reading: outcome.reading, checkedAtMs };
    const seen = before?.deploySlots ?? new Map();
    const deploys = deploysBetween(seen, latest.reading);
    const genesisHash = outcome.kind === 'implausible' ? undefined : outcome.genesisHash;
    const isHeldBack = deps.save(latest, deploys, genesisHash) === 'held-back' && before !== undefined;
    floor = {
      ...latest.reading,
      deploySlots: isHeldBack ? seen : seenAfter(seen, latest.reading),
      genesisHash: genesisHash ?? before?.genesisHash,
    };
    state = { latest, trouble: undefined };
    behindSinceMs = undefined;
    implausible = 0;
    deps.noteRead(latest, isHeldBack ? [] : deploys, outcome.reasons);
    return latest;
  }

  function keepLast(trouble: Unread): undefined {
    state = { latest: state.latest, trouble };
    const nowMs = clock.monotonic();
    behindSinceMs = trouble.kind === 'behind' ? (behindSinceMs ?? nowMs) : undefined;
    implausible = trouble.kind === 'implausible' ? implausible + 1 : 0;
    if (behindSinceMs !== undefined && nowMs - behindSinceMs >= BEHIND_MS_MAX) floor = undefined;
    deps.noteUnread(trouble);
  }

  async function fillUntil(startMs: number, reading: Reading, signal: AbortSignal): Promise<void> {
    try {
      await within(clock, startMs - clock.monotonic(), signal, (over) => deps.fillBlockTimes(reading, over));
    } catch (error) {
      deps.noteBroken(error);
    }
  }

  return { run, state: (): WatchState => state };
}

const TOO_SLOW = `the reading took longer than ${READING_MS_MAX / 1_000} s`;

/** Waits after failed readings, in milliseconds; the last one repeats. */
const RETRY_MS = [250, 500, 1_000, 2_000, 4_000, 8_000, 15_000] as const;

/** When to read next: on a grid of `pollMs` from `firstStartMs`, and sooner after failures in a row: a backend may just be starting. */
function nextStartMs(pollMs: number, firstStartMs: number, nowMs: number, failures: number): number {
  const elapsed = Math.max(0, nowMs - firstStartMs);
  const onGrid = firstStartMs + (Math.floor(elapsed / pollMs) + 1) * pollMs;
  if (failures === 0) return onGrid;
  const retryMs = RETRY_MS[Math.min(failures, RETRY_MS.length) - 1] ?? pollMs;
  return Math.min(onGrid, nowMs + retryMs);
}

/** The log of readings, and the only record of deploys since `before`, the last run's slots: they make no events (docs/spec.md 4.1). */
export function createNotes(log: Log, watched: readonly WatchedProgram[], before: DeploySlots) {
  const labels = new Map(watched.map(({ address, label }) => [address, label]));
  let stored = before;
  let isFirst = true;
  const logDeploys = (deploys: readonly Deploy[], sentence: string) => {
    for (const { program, previousSlot, deploySlot } of deploys) {
      const slots = { previous_slot: Number(previousSlot), deploy_slot: Number(deploySlot) };
      log.info({ program, label: labels.get(program), ...slots }, sentence);
    }
  };

  return {
    noteRead: (latest: Latest, deploys: readonly Deploy[], reasons: readonly string[]): void => {
      if (reasons.length > 0)
        log.warn({ reasons }, 'read from a fallback backend, or accepted in spite of doubts');
      if (isFirst) {
        const { contextSlot, programs } = latest.reading;
        log.info({ slot: Number(contextSlot), programs: programs.size }, 'first reading');
        logDeploys(deploysBetween(stored, latest.reading), 'deployed while deploys was not running');
      }
      isFirst = false;
      logDeploys(deploys, 'deployed');
    },
    noteUnread: (unread: Unread): void => {
      if (unread.kind === 'broken')
        log.error({ err: unread.error }, 'reading failed because of an internal error');
      else log.warn({ outcome: unread.kind, reasons: unread.reasons }, 'programs could not be read');
    },
    noteOtherChain: (): void => {
      stored = new Map();
      log.warn('the chain is a different one: stored block times and the last reading were discarded');
    },
  };
}

/** Readings that may fail before the data counts as stale. */
const READINGS_MISSED_MAX = 3;

export function healthOf({ latest, trouble }: WatchState, pollMs: number, nowMs: number): Health {
  const why = trouble === undefined ? '' : ` ${reasonOf(trouble)}`;
  if (latest === undefined) {
    return { isWell: false, sentence: `Programs have not been read from the chain yet.${why}` };
  }
  const ageMs = Math.max(0, nowMs - latest.checkedAtMs);
  const { programs, contextSlot } = latest.reading;
  const read = `${programs.size} programs, read ${Math.round(ageMs / 1_000)} s ago at slot ${contextSlot}.`;
  if (ageMs <= READINGS_MISSED_MAX * pollMs) return { isWell: true, sentence: `ok: ${read}${why}` };
  return { isWell: false, sentence: `Data is stale: ${read}${why}` };
}

function reasonOf(trouble: Unread): string {
  if (trouble.kind === 'broken') {
    const reason = unwritableReason(trouble.error);
    return reason === undefined
      ? 'The last reading failed because of an internal error; see the log.'
      : `The last reading could not be stored (${reason}).`;
  }
  return `The last reading failed: ${trouble.reasons.join('; ')}.`;
}
