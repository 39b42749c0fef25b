import { beforeAll, expect, test } from 'bun:test';
import { admitted, within } from '../../bench/self/answers.ts';
import { honesty, OUTAGES, type Outage, outage } from '../../bench/self/soak/outage.ts';

/** The short form of `bun run soak --only outage`: all at once, each on a Redis and processes of its own. */
const ended = new Map<string, Promise<Outage>>();
beforeAll(() => {
  for (const kind of OUTAGES) {
    const seen = outage(kind, { quiet: 4, out: 3, after: 6 }, AbortSignal.timeout(60_000));
    seen.catch(() => undefined); // told by its test
    ended.set(kind, seen);
  }
});

test.each(OUTAGES)(
  'L6 C6 E4 while Redis is %s a plan keeps its rate, a trial is 503 and never 402, and all is well again without a restart',
  async (kind) => {
    const seen = await ended.get(kind);
    if (seen === undefined) throw new Error(`${kind} was not started`);
    expect(honesty(seen).filter(({ holds }) => !holds)).toEqual([]);
    const during = admitted(within(seen.paid, seen.fromMs, seen.untilMs));
    expect(during).toBeGreaterThan((0.5 * 100 * (seen.untilMs - seen.fromMs)) / 1_000);
  },
  60_000,
);
