import type { Slot } from '@solana/kit';
import type { Clock } from '../../shared/clock.ts';
import type { Store } from '../../shared/store/open.ts';
import { deploySlotOf, type Reading } from './change.ts';
import type { RpcBackend } from './rpc.ts';

/** Calls in one turn, so that a list of new programs cannot flood a backend. */
const LOOKUPS_MAX = 150;
/** Consecutive failures that end a turn: the backends are away. */
const FAILURES_MAX = 3;
/** Wait after a rate limit: our own trial plan allows five calls a second. */
const OVER_RATE_PAUSE_MS = 1_000;
/** Wait before a slot without a time is retried; doubles up to the second figure. */
const [RETRY_MS_MIN, RETRY_MS_MAX] = [5_000, 3_600_000];
/** Past the year 9999 an ISO 8601 timestamp changes its form. */
const UNIX_SECONDS_MAX = 253_402_300_799;

type Wait = Readonly<{ retryMs: number; dueMs: number }>;

type LookUp =
  { readonly kind: 'time'; unixSeconds: number } | { readonly kind: 'none' | 'failed' | 'over-rate' };

type BlockTimeDeps = Readonly<{
  backends: readonly RpcBackend[];
  store: ReturnType<typeof createBlockTimeStore>;
  /** The slots whose block times events wait for, and since when (Unix milliseconds). */
  awaited(): readonly Readonly<{ slot: Slot; sinceMs: number }>[];
  clock: Clock;
}>;

/** First and longest wait between turns, so before a slot that an event waits for is retried. */
const [AWAITED_RETRY_MS_MIN, AWAITED_RETRY_MS_MAX] = [1_000, 15_000];
/** After so long, a block time that an event waits for is retried as rarely as any other. */
const URGENT_MS = 600_000;

/** Looks up block times of deploy slots. One that no backend has yet is retried, ever more rarely. */
export function createBlockTimes({ backends, store, awaited, clock }: BlockTimeDeps) {
  let waits = new Map<Slot, Wait>();
  const missingOf = (slots: readonly Slot[]) => slots.filter((slot) => store.find(slot) === undefined);

  async function fill(reading: Reading, signal: AbortSignal): Promise<void> {
    const shown = [...reading.programs.values()].flatMap((state) => deploySlotOf(state) ?? []);
    for (
      let retryMs = AWAITED_RETRY_MS_MIN;
      !signal.aborted;
      retryMs = Math.min(2 * retryMs, AWAITED_RETRY_MS_MAX)
    ) {
      const waiting = awaited();
      const fresh = waiting.filter(({ sinceMs }) => clock.now() - sinceMs < URGENT_MS);
      const urgent = new Set(fresh.map(({ slot }) => slot));
      const slots = new Set([...shown, ...waiting.map(({ slot }) => slot)]);
      waits = new Map([...waits].filter(([slot]) => slots.has(slot)));
      const isDue = (slot: Slot) => urgent.has(slot) || dueInMs(slot) === 0;
      const due = missingOf([...slots]).filter(isDue);
      const order = due.sort((a, b) => Number(urgent.has(b)) - Number(urgent.has(a)) || (a < b ? 1 : -1));
      await lookUpAll(order, signal);
      const missing = missingOf([...slots]);
      if (missing.length === 0) return;
      const waitsMs = missing.map((slot) => (urgent.has(slot) ? 0 : dueInMs(slot)));
      await clock.sleep(Math.max(retryMs, Math.min(...waitsMs)), signal);
    }
  }

  function dueInMs(slot: Slot): number {
    return Math.max(0, (waits.get(slot)?.dueMs ?? 0) - clock.monotonic());
  }

  async function lookUpAll(slots: readonly Slot[], signal: AbortSignal): Promise<void> {
    let failures = 0;
    for (let calls = 0, i = 0; calls < LOOKUPS_MAX && failures < FAILURES_MAX; calls++) {
      const slot = slots[i];
      if (slot === undefined) return;
      const found = await lookUp(backends, slot, signal);
      if (signal.aborted) return;
      if (found.kind === 'time' || found.kind === 'none') i++;
      if (found.kind === 'time') store.save(slot, found.unixSeconds);
      if (found.kind === 'none') wait(slot);
      if (found.kind === 'over-rate') await clock.sleep(OVER_RATE_PAUSE_MS, signal);
      failures = found.kind === 'failed' || found.kind === 'over-rate' ? failures + 1 : 0;
    }
  }

  function wait(slot: Slot) {
    const before = waits.get(slot);
    const retryMs = before === undefined ? RETRY_MS_MIN : Math.min(before.retryMs * 2, RETRY_MS_MAX);
    waits.set(slot, { retryMs, dueMs: clock.monotonic() + retryMs });
  }

  return {
    /** Looks up the block times of a reading and of waiting events, these first, until none is missing or `signal` aborts. */
    fill,
    /** Retries every slot at once, because the chain is another one. */
    forgetWaits: () => waits.clear(),
  };
}

async function lookUp(backends: readonly RpcBackend[], slot: Slot, signal: AbortSignal): Promise<LookUp> {
  let [answered, overRate] = [false, false];
  for (const { call } of backends) {
    const outcome = await call('getBlockTime', [Number(slot)], signal);
    if (outcome.kind === 'result' && isUnixSeconds(outcome.result))
      return { kind: 'time', unixSeconds: outcome.result };
    if (outcome.kind === 'failed') overRate ||= outcome.isOverRate;
    else answered = true; // skipped, cleaned up or not available yet: another backend may know it
  }
  return { kind: answered ? 'none' : overRate ? 'over-rate' : 'failed' };
}

function isUnixSeconds(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value <= UNIX_SECONDS_MAX;
}

/** One row per deploy slot ever seen, in Unix seconds. */
export function createBlockTimeStore(store: Store) {
  const find = store.prepare<{ unix_seconds: number }, [bigint]>(`
    SELECT unix_seconds FROM block_times WHERE slot = ?`);
  const save = store.prepare<unknown, [bigint, number]>('INSERT OR REPLACE INTO block_times VALUES (?, ?)');
  return {
    find: (slot: Slot): number | undefined => find.get(slot)?.unix_seconds,
    save: (slot: Slot, unixSeconds: number): void => void save.run(slot, unixSeconds),
  };
}
