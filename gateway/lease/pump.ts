import type { Clock } from '../../shared/clock.ts';
import type { Journal } from '../limits/journal.ts';
import { type Collected, GATHER_MS, type Leases } from './leases.ts';
import type { Answered, CreditAsk, LeaseStore, NodeId, ScanAsk } from './messages.ts';
import { createBreaker } from './outage.ts';
import type { ScanPlaces } from './scan-places.ts';
import { settleCredits, settleRates } from './settle.ts';

/** What the pump has done since it was made. */
export type PumpCounts = Readonly<{ messages: number; asks: number; failed: number }>;

/** Carries messages between the leases and their store, off the way of requests. */
export type Pump = Readonly<{
  /** Sends what is due at the end of this turn of the event loop. */
  kick(): void;
  /** Keeps leases fresh until `signal` aborts. */
  run(signal: AbortSignal): Promise<void>;
  /** Gives everything held back, when no request is under way any more; else credits wait for this node for a day. */
  release(): Promise<void>;
  /**
   * Tells the centre what this node has ever spent, as after it may have lost its state: `spent` are the node's rows of
   * the ledger. Repeats what fails until `signal` aborts.
   */
  tellAgain(spent: Iterable<SpentRow>, signal: AbortSignal): Promise<void>;
  /** The store is known not to answer. */
  isOut(): boolean;
  counts(): PumpCounts;
}>;

export type SpentRow = Readonly<{ accountId: number; charged: number; refunded: number }>;

type Deps = Readonly<{
  leases: Leases;
  scans: Pick<ScanPlaces, 'collect' | 'settle' | 'release'>;
  store: LeaseStore;
  journal: Journal;
  clock: Clock;
  node: NodeId;
  fence: number;
  /** Runs a function once, after the current turn's other work. */
  soon(run: () => void): void;
}>;

const TICK_MS = 20;

/** Asks in one call of the store, and calls of each kind under way. More are sent when these are answered. */
const ASKS_MAX = 256;
const CALLS_MAX = 8;

/** Full calls that a turn of the pump makes for accounts that no request asks for. */
const REFRESH_ROUNDS = 4;

/** While the store is out, so many accounts are its trial. */
const TRIAL_ASKS = 8;

/** What could not be told again is tried again after this pause. */
const TELL_AGAIN_MS = 200;

const FORGET_A_TICK = 2_000;

export function createPump({ leases, scans, store, journal, clock, node, fence, soon }: Deps): Pump {
  const breaker = createBreaker();
  const counts = { messages: 0, asks: 0, failed: 0 };
  let seq = 0;
  let underWay = 0;
  let kicked = false;
  let roundTripMs = 5;

  /** What is spent from the decision to ask until the answer is read: two turns of the pump and a slow round trip. */
  const aheadMs = () => 2 * TICK_MS + 2 * roundTripMs;

  function kick(): void {
    if (kicked) return;
    kicked = true;
    soon(() => {
      kicked = false;
      send(true);
    });
  }

  function send(hurried: boolean): void {
    const nowMs = clock.monotonic();
    if (underWay >= CALLS_MAX || !breaker.maySend(nowMs)) return;
    const isTrial = breaker.isOpen();
    const most = isTrial ? TRIAL_ASKS : ASKS_MAX;
    // A store that is back is found by whoever has something to say, patient or not.
    const due = leases.collect(nowMs, aheadMs(), most, hurried && !isTrial);
    const places = scans.collect(nowMs, most);
    if (due.rates.length + due.credits.length + places.length > 0) breaker.sent(nowMs);
    if (hurried || isTrial) dispatch(due);
    else dispatchWithWatched(due);
    void sendScans(places);
  }

  /** Adds what no request asks for, but time: as far as there is room in the same messages, and then in more of them. */
  function dispatchWithWatched({ rates, credits }: Collected): void {
    const room = ASKS_MAX - Math.max(rates.length, credits.length);
    const more = leases.collectWatched(clock.monotonic(), aheadMs(), room);
    dispatch({ rates: [...rates, ...more.rates], credits: [...credits, ...more.credits] });
    if (more.rates.length === room || more.credits.length === room) refresh();
  }

  function refresh(): void {
    for (let round = 0; round < REFRESH_ROUNDS && underWay < CALLS_MAX && !breaker.isOpen(); round++) {
      const due = leases.collectWatched(clock.monotonic(), aheadMs(), ASKS_MAX);
      dispatch(due);
      if (due.rates.length < ASKS_MAX && due.credits.length < ASKS_MAX) return;
    }
  }

  function dispatch({ rates, credits }: Collected): void {
    if (rates.length > 0) void sendRates(rates);
    if (credits.length > 0) void sendCredits(credits);
  }

  async function sendRates(due: Collected['rates']): Promise<void> {
    const asks = due.map(({ ask }) => ask);
    const answers = await told(asks.length, () => store.rates({ node, fence, seq: ++seq }, asks));
    settleRates(due, answers, clock.monotonic());
    if (due.length === ASKS_MAX) soon(() => send(false));
  }

  async function sendCredits(due: Collected['credits']): Promise<void> {
    const asks = due.map(({ ask }) => ask);
    const answers = (await areDurable(due))
      ? await told(asks.length, () => store.credits({ node, fence, seq: ++seq }, asks))
      : [];
    settleCredits(due, answers, clock.monotonic());
    if (due.length === ASKS_MAX) soon(() => send(false));
  }

  async function sendScans(asks: readonly ScanAsk[]): Promise<void> {
    if (asks.length === 0) return;
    const answers = await told(asks.length, () => store.scans({ node, fence, seq: ++seq }, asks));
    scans.settle(asks, answers, clock.monotonic());
    if (asks.length === ASKS_MAX) soon(() => send(false));
  }

  /** The centre must never know of a charge that a crash could take from the journal. */
  async function areDurable(due: Collected['credits']): Promise<boolean> {
    const changed = due.filter(
      ({ credit: { durable }, ask }) => durable?.charged !== ask.charged || durable.refunded !== ask.refunded,
    );
    try {
      await Promise.all(changed.map(({ account }) => journal.note(account.id)));
    } catch {
      return false;
    }
    for (const { credit, ask } of changed) credit.durable = { charged: ask.charged, refunded: ask.refunded };
    return true;
  }

  async function told<Grant>(
    asks: number,
    call: () => Promise<readonly Answered<Grant>[]>,
  ): Promise<readonly Answered<Grant>[]> {
    const sentMs = clock.monotonic();
    counts.messages++;
    counts.asks += asks;
    underWay++;
    const answers = await call();
    underWay--;
    const nowMs = clock.monotonic();
    const answered = answers.some(({ kind }) => kind === 'granted');
    if (answered) roundTripMs += (nowMs - sentMs - roundTripMs) / 8;
    else counts.failed++;
    breaker.note(answered, nowMs);
    return answers;
  }

  async function run(signal: AbortSignal): Promise<void> {
    let gatheredMs = clock.monotonic();
    while (!signal.aborted) {
      await clock.sleep(TICK_MS, signal);
      const nowMs = clock.monotonic();
      // By the clock, as turns are late on a busy machine.
      const gathers = nowMs - gatheredMs >= GATHER_MS;
      send(!gathers);
      if (gathers) gatheredMs = nowMs;
      leases.forgetIdle(clock.monotonic(), FORGET_A_TICK);
    }
  }

  async function release(): Promise<void> {
    for (;;) {
      const nowMs = clock.monotonic();
      const due = leases.release(nowMs, ASKS_MAX);
      const places = scans.release(nowMs, ASKS_MAX);
      if (due.length === 0 && places.length === 0) return;
      const failedBefore = counts.failed;
      await Promise.all([due.length > 0 ? sendCredits(due) : undefined, sendScans(places)]);
      if (counts.failed > failedBefore) return;
    }
  }

  async function tellAgain(spent: Iterable<SpentRow>, signal: AbortSignal): Promise<void> {
    const asks: CreditAsk[] = [];
    for (const row of spent) {
      // The account's own total is newer than revision -1, and told by who serves it.
      if (!leases.tellAgain(row.accountId))
        asks.push({ ...row, revision: -1, total: 0, held: 0, wanted: 0, needed: 0 });
    }
    kick();
    while (asks.length > 0 && !signal.aborted) {
      const part = asks.slice(0, ASKS_MAX);
      const answers = await told(part.length, () => store.credits({ node, fence, seq: ++seq }, part));
      asks.splice(0, part.length, ...part.filter((_, i) => answers[i]?.kind !== 'granted'));
      if (answers.some(({ kind }) => kind !== 'granted')) await clock.sleep(TELL_AGAIN_MS, signal);
    }
  }

  return { kick, run, release, tellAgain, isOut: breaker.isOpen, counts: () => counts };
}
