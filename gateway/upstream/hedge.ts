import type { Clock } from '../../shared/clock.ts';
import { EMPTY } from '../http/slab.ts';
import { atEndOfTurn } from '../http/turns.ts';
import type { Backend } from './backend.ts';
import { answerFor, plainIdAt } from './followed-answer.ts';
import type { Connection, ExchangeHandler } from './http-connection.ts';
import { createRetryBudget, type Need, type Pool } from './selection.ts';

/** A light read under way at one backend. */
export type HedgedCall = Readonly<{
  /** The backend that has it, and all that it may be sent to. */
  backend: Backend | undefined;
  able: readonly Backend[];
  need: Need;
  sentMs: number;
  /** It is answered, or no longer a matter of its first attempt. */
  isOver: boolean;
  hasLeft(): boolean;
  /** Gives the id that it is sent under. */
  sendTo(backend: Backend, handler: ExchangeHandler): Uint8Array;
  /** `idAt` as `plainIdAt` gives it; gives whether it is answered. */
  answerWith(backend: Backend, body: Buffer, idAt: number, sentMs: number, cameMs: number): boolean;
}>;

/** One second attempt for so many calls; what is saved up must not be a burst. */
const PER_CALL = 0.02;
const SAVED_MAX = 10;
/** No call is late sooner, and none is looked at more often than timers are exact. */
const LATE_MS_MIN = 5;
const LOOK_MS = 2;
/** A call that finds so many watched is not. */
const WATCHED_MAX = 16_384;
const NEVER = new AbortController().signal;

export type Hedge = Readonly<ReturnType<typeof createHedge>>;

/**
 * Sends light reads whose first byte is late, later than all but one in a hundred of their lane, to a second backend too.
 * The first plain result is the answer; the other attempt is dropped and counts as no failure. `onHedge` reports both.
 */
export function createHedge(
  { clock, pool }: Readonly<{ clock: Clock; pool: Pick<Pool, 'second' | 'lateMs'> }>,
  onHedge: (outcome: 'made' | 'won') => void,
) {
  const budget = createRetryBudget(PER_CALL, SAVED_MAX, 0);
  const watched: HedgedCall[] = [];
  let lateMs = Infinity;
  let isWatching = false;

  async function watchOn(): Promise<void> {
    isWatching = true;
    for (let first = watched[0]; first !== undefined; first = watched[0]) {
      const waitMs = first.isOver ? 0 : first.sentMs + lateMs - clock.monotonic();
      if (waitMs > 0 && lateMs < Infinity) await clock.sleep(Math.max(LOOK_MS, waitMs), NEVER);
      else {
        watched.shift();
        if (waitMs <= 0 && !first.isOver && !first.hasLeft()) sendSecond(first);
      }
    }
    isWatching = false;
  }

  function sendSecond(call: HedgedCall): void {
    const { backend: first, able, need } = call;
    const second = first === undefined ? undefined : pool.second(able, first, need);
    if (second === undefined || !budget.take()) return;
    const sentMs = clock.monotonic();
    const drop = () => {
      second.leave();
      second.endProbation();
    };
    const endWith = (body: Buffer, connection: Connection) => {
      // Behind what is none to the call, what comes next over its connection may be late answers to others.
      const idAt = plainIdAt(body, sentId);
      if (idAt === -1 && answerFor(body, sentId, EMPTY, second.config.trustsEnd) === undefined)
        connection.destroy('bad-framing');
      if (!call.isOver && call.answerWith(second, body, idAt, sentMs, clock.monotonic())) onHedge('won');
      else drop();
    };
    second.enter(clock);
    onHedge('made');
    const sentId = call.sendTo(second, {
      hasOther: () => true,
      hasLeft: () => call.isOver || call.hasLeft(),
      onSmallReply: (body, _cameMs, connection) => atEndOfTurn({ endTurn: () => endWith(body, connection) }),
      onOutcome(outcome) {
        if (outcome.kind === 'reply') outcome.body.cancel();
        drop();
      },
    });
  }

  return {
    watch(call: HedgedCall): void {
      budget.deposit();
      if (lateMs === Infinity || watched.length >= WATCHED_MAX) return;
      watched.push(call);
      if (!isWatching) void watchOn();
    },
    tick(): void {
      lateMs = Math.max(LATE_MS_MIN, pool.lateMs('state') ?? Infinity);
    },
  };
}
