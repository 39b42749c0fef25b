import { BodyBudget } from '../../gateway/listener/body-budget.ts';
import { CallerConnection } from '../../gateway/listener/caller-connection.ts';
import { SocketListener } from '../../gateway/listener/listener.ts';
import { systemClock } from '../../shared/clock.ts';
import { testConfig } from '../started/gateway.ts';
import { createVirtualClock } from '../gateway/virtual-clock.ts';
import { type Count, type Random, type Report, runTimed, turns, until } from './episodes.ts';
import { answerTo, type CallerPlan, checkAnswers, planOf } from './listener-requests.ts';

/** Episodes at once, each with a listener and a clock of its own. */
const LANES = 4;
/** What is written at once of a caller's bytes. */
const WRITE_BYTES_MAX = 1 << 20;

/** The listener for callers against pseudo-random requests. */
export async function fuzz(seed: number, seconds: number, report?: Report, signal?: AbortSignal) {
  const work = timedTurns();
  const budgets = new Set<BodyBudget>();
  const { share } = BodyBudget.prototype;
  BodyBudget.prototype.share = function () {
    budgets.add(this);
    return share.call(this);
  };
  const fuzzed = await runTimed({ seed, seconds, lanes: LANES, run: runEpisode, report, signal }, work);
  work.stop();
  BodyBudget.prototype.share = share;
  const isHeld = [...budgets].some(({ bytes }) => bytes > 0);
  const finding = fuzzed.finding ?? (isHeld ? 'a listener without connections holds bodies' : undefined);
  return { ...fuzzed, finding };
}

/**
 * Measures what connections do in each turn of the loop together, by the shorter of time and CPU time: other processes take
 * the one, other threads the other.
 */
function timedTurns() {
  const steps = ['onData', 'workOn', 'onDrain', 'onHalfClose'] as const;
  const own = CallerConnection.prototype as unknown as Record<string, (...args: unknown[]) => unknown>;
  const before = steps.map((name) => own[name]);
  let [turnMs, longestMs, depth, isOver] = [0, 0, 0, false];
  const endTurn = () => {
    longestMs = Math.max(longestMs, turnMs);
    turnMs = 0;
    if (!isOver) setImmediate(endTurn);
  };
  endTurn();
  steps.forEach((name, i) => {
    own[name] = function (...args) {
      // Work is done inside other steps too.
      if (depth > 0) return before[i]?.apply(this, args);
      const [startedMs, cpu] = [systemClock.monotonic(), process.cpuUsage()];
      depth++;
      try {
        return before[i]?.apply(this, args);
      } finally {
        depth--;
        turnMs += Math.min(systemClock.monotonic() - startedMs, process.cpuUsage(cpu).user / 1_000);
      }
    };
  });
  return {
    takeLongestMs() {
      const taken = longestMs;
      longestMs = 0;
      return taken;
    },
    stop() {
      isOver = true;
      steps.forEach((name, i) => {
        const step = before[i];
        if (step !== undefined) own[name] = step;
      });
    },
  };
}

/** Some callers at once of one listener. */
async function runEpisode(random: Random, count: Count): Promise<void> {
  const { clock, advance } = createVirtualClock();
  const { gateway } = testConfig({});
  const listener = new SocketListener(gateway, { clock, shared: false });
  const { port } = listener.open({ port: 0 }, (request) => answerTo(request as never)); // ours has what it reads of one
  try {
    const plans = Array.from({ length: 1 + random.below(5) }, (_, i) => planOf(random, `${i}`));
    await Promise.all(plans.map((plan) => runCaller(port, plan, random, count)));
    // Those who have left are probed.
    for (let i = 0; i < 4; i++) {
      advance(500.5);
      await turns(3);
    }
  } finally {
    await listener.close(0, 0);
  }
}

async function runCaller(port: number, plan: CallerPlan, random: Random, count: Count) {
  const bytes = await converse(port, plan, random);
  if (bytes === undefined) return count('reset');
  const seen = checkAnswers(plan, bytes);
  if (typeof seen === 'string') throw new Error(`${plan.text}\n  ${seen}`);
  for (const name of seen) count(name);
}

/** Sends what a caller plans, and gives all that came until its connection ended; `undefined`: it has left. */
export async function converse(
  port: number,
  plan: Pick<CallerPlan, 'wire' | 'splits' | 'gap' | 'reads' | 'end' | 'text'>,
  random: Random,
): Promise<Buffer | undefined> {
  const pieces: Buffer[] = [];
  let [isOpen, isWritable] = [true, true];
  let drained = Promise.withResolvers<void>();
  const socket = await Bun.connect({
    hostname: '127.0.0.1',
    port,
    allowHalfOpen: true,
    socket: {
      data: (_socket, bytes) => void pieces.push(Buffer.from(bytes)),
      drain: () => drained.resolve(),
      end: (each) => void each.end(),
      error: () => undefined,
      close() {
        isOpen = false;
        drained.resolve();
      },
    },
  });
  socket.setNoDelay(true);
  if (plan.reads === 'late') socket.pause();
  let at = 0;
  for (const split of [...plan.splits, plan.wire.length]) {
    while (at < split && isOpen && isWritable) {
      const written = socket.write(plan.wire.subarray(at, Math.min(split, at + WRITE_BYTES_MAX)));
      if (written < 0) isWritable = false;
      else at += written;
      if (at >= split) break;
      drained = Promise.withResolvers();
      await Promise.race([drained.promise, turns(20)]);
    }
    await turns(random.below(plan.gap + 1));
    if (plan.reads === 'late' && at < split) break;
  }
  if (plan.reads === 'late') await turns(random.below(30));
  if (plan.reads === 'late' && isOpen) socket.resume();
  if (plan.end === 'reset') {
    socket.terminate();
    return undefined;
  }
  // What a caller that reads late has not written yet.
  for (; at < plan.wire.length && isOpen; await turns(1))
    at += Math.max(0, socket.write(plan.wire.subarray(at, at + WRITE_BYTES_MAX)));
  if (isOpen) socket.shutdown();
  await until(
    () => !isOpen,
    () => `${plan.text}\n  its connection does not end`,
  );
  return Buffer.concat(pieces);
}
