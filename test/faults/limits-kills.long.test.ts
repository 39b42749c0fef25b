import { expect, test } from 'bun:test';
import { exactness, storm } from '../../bench/self/soak/kills.ts';
import { CENTRES } from '../../bench/self/soak/subject.ts';

const signal = AbortSignal.timeout(120_000);

/** The short form of `bun run soak --only kills`. */
test.each(CENTRES)(
  'L7 L18 D1 D2 after ten kill -9 under load ledger, journals and usage agree to the unit, and 402 comes at the last credit: %s',
  async (centre) => {
    const load = { processes: 4, kills: 10, everyMs: 500, perSecond: 400, credits: 14_000 };
    const seen = await storm({ centre, ...load }, signal);
    expect(seen.kills).toBe(10);
    expect(exactness(seen).filter(({ holds }) => !holds)).toEqual([]);
  },
  60_000,
);
