const DEADLINE_MS = 60_000;
const PAUSE_MS = 100;

/** Asks until the answer is one; throws after a minute. */
export async function eventually<T>(ask: () => Promise<T | undefined | false | ''>): Promise<T> {
  const untilMs = performance.now() + DEADLINE_MS;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false && answer !== '') return answer;
    if (performance.now() > untilMs) throw new Error(`it did not come within ${DEADLINE_MS} ms`);
    await Bun.sleep(PAUSE_MS); // between two looks at processes that move by themselves
  }
}
