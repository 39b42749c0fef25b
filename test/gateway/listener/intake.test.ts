import { describe, expect, test } from 'bun:test';
import { Intake, TURN_BYTES } from '../../../gateway/listener/intake.ts';

/** What the runtime reads of a socket at once. */
const READ_BYTES = 524_288;

/** Turns of a loop that reads in each all that has something and is not stopped: those first that could be read before. */
function createLoop(count: number, uploaders: number) {
  const ready = new Set<Caller>();
  class Caller {
    isRead = false;
    #isStopped = false;
    get isStopped(): boolean {
      return this.#isStopped;
    }
    set isStopped(isStopped: boolean) {
      this.#isStopped = isStopped;
      if (isStopped) ready.delete(this);
      else ready.add(this);
    }
  }
  const callers = Array.from({ length: count }, () => new Caller());
  for (const caller of callers) ready.add(caller);
  const [short, long] = [callers.slice(uploaders), callers.slice(0, uploaders)];
  // The oldest send short requests, the newest upload without end.
  const intake = new Intake(new Set([...short, ...long]));

  /** Gives what was read. */
  async function turn(): Promise<number> {
    let bytes = 0;
    for (const caller of ready) {
      caller.isRead = true;
      if (!long.includes(caller)) continue;
      bytes += READ_BYTES;
      intake.took(caller, READ_BYTES);
    }
    await new Promise((resolve) => setImmediate(resolve));
    return bytes;
  }

  return { turn, short, long, forget: () => callers.forEach((caller) => (caller.isRead = false)) };
}

describe('F18 of more connections than are stopped at once', () => {
  test('F18 none waits for ever behind uploads over the newest', async () => {
    const { turn, short, long, forget } = createLoop(3_000, 40);
    await turn();
    forget();
    for (let turns = 0; turns < 400; turns++) await turn();
    expect(short.filter(({ isRead }) => !isRead)).toHaveLength(0);
    expect(long.filter(({ isRead }) => !isRead)).toHaveLength(0);
  });

  test('F18 no more is read in a turn once it is known who uploads', async () => {
    const { turn } = createLoop(3_000, 40);
    await turn();
    const most: number[] = [];
    for (let turns = 0; turns < 400; turns++) most.push(await turn());
    expect(Math.max(...most)).toBe(TURN_BYTES);
  });
});
