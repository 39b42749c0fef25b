import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { USAGE_MIGRATIONS } from '../../../shared/ledger/schema.ts';
import { createRequestLog, keptRequests, REQUESTS_MAX, WINDOW_MS } from '../../../deploys/api/request-log.ts';
import type { KeyId } from '../../../shared/keys/api-key.ts';
import type { Store } from '../../../shared/store/open.ts';
import { createVirtualClock, START_MS } from '../../fakes/chain-clock.ts';
import { opened } from '../../started/gateway.ts';

const id = (text: string) => text as KeyId; // any text will do for a name
const KEY = id('a');

test.each([
  [0, 60],
  [999, 60],
  [1_000, 59],
  [59_000.5, 1],
  [59_999, 1],
  [60_000, undefined],
])('at %d ms the wait is %p whole seconds', (nowMs, seconds) => {
  const enter = createRequestLog();
  for (let i = 0; i < 60; i++) enter(KEY, 0);
  const entry = enter(KEY, nowMs);
  expect(entry.kind === 'entered' ? undefined : entry.retryAfterSeconds).toBe(seconds);
});

/** Gaps between requests in milliseconds, crowded enough that the limit is met. */
const crowded = (gap: fc.Arbitrary<number>) =>
  fc.array(fc.oneof(fc.constant(0), gap), { minLength: 100, maxLength: 400 });
const fractions = crowded(fc.double({ min: 0, max: 2_500, noNaN: true }));

test('no 60 seconds hold more than 60, and a caller that waits exactly Retry-After is never refused twice in a row', () => {
  fc.assert(
    fc.property(fractions, fc.boolean(), (waits, isPatient) => {
      const enter = createRequestLog();
      const enteredMs: number[] = [];
      let nowMs = 0;
      for (const wait of waits) {
        nowMs += wait;
        let entry = enter(KEY, nowMs);
        if (isPatient && entry.kind === 'over-rate') {
          nowMs += entry.retryAfterSeconds * 1_000;
          entry = enter(KEY, nowMs);
          expect(entry.kind).toBe('entered');
        }
        if (entry.kind === 'entered') enteredMs.push(nowMs);
        const sixtyAgoMs = enteredMs.at(-REQUESTS_MAX - 1);
        if (sixtyAgoMs !== undefined)
          expect((enteredMs.at(-1) ?? 0) - sixtyAgoMs).toBeGreaterThanOrEqual(WINDOW_MS);
      }
    }),
    { numRuns: 80 },
  );
});

test('memory is bounded: the key that was quiet longest is forgotten first', () => {
  const enter = createRequestLog(2);
  for (let i = 0; i < 60; i++) enter(id('busy'), 0);
  for (const nowMs of [1, 2]) enter(id('quiet'), nowMs); // the second time it pushes nobody out
  expect(enter(id('busy'), 3).kind).toBe('over-rate');
  for (let i = 0; i < 3; i++) {
    expect(enter(id('busy'), 60_001 + i).kind).toBe('entered');
    enter(id(`new ${i}`), 60_002 + i);
  }
  for (let i = 0; i < 57; i++) expect(enter(id('busy'), 60_010).kind).toBe('entered');
  expect(enter(id('busy'), 60_010).kind).toBe('over-rate');
});

describe('a log that is kept', () => {
  const full = { kind: 'over-rate', retryAfterSeconds: 60 } as const;
  let store: Store;
  let troubles: unknown[];
  beforeEach(() => {
    store = opened(':memory:', USAGE_MIGRATIONS);
    troubles = [];
  });
  afterEach(() => store.close());
  /** The log of a process that began at `startMs` of a wall clock; its monotonic clock begins anew. */
  function started(startMs: number) {
    const clock = createVirtualClock(startMs);
    const noteBroken = (error: unknown) => void troubles.push(error);
    const log = createRequestLog(undefined, keptRequests('programs', { store, clock, noteBroken }));
    const enter = () => log(KEY, clock.monotonic());
    return { ...clock, enter, fill: () => Array.from({ length: 60 }, enter) };
  }
  const rows = () => store.query('SELECT count(*) FROM api_requests').values();

  test('goes on in the next process to the millisecond (E40), and is forgotten after its minute', async () => {
    const first = started(START_MS);
    await first.advance(7_000);
    first.fill();
    expect(rows()).toEqual([[1]]);
    const second = started(START_MS + 10_000);
    expect(second.enter()).toEqual({ kind: 'over-rate', retryAfterSeconds: 57 });
    await second.advance(56_999);
    expect(second.enter().kind).toBe('over-rate');
    started(START_MS + 67_000);
    expect(rows()).toEqual([[0]]);
    await second.advance(1);
    expect(second.enter().kind).toBe('entered');
    expect(troubles).toEqual([]);
  });

  test('makes nobody wait longer than a minute when the wall clock was set back in between', async () => {
    started(START_MS).fill();
    const second = started(START_MS - 3_600_000);
    expect(second.enter()).toEqual(full);
    await second.advance(60_000);
    expect(second.enter().kind).toBe('entered');
  });

  test('that cannot be written counts all the same, and that is told', () => {
    const { enter, fill } = started(START_MS);
    store.run('DROP TABLE api_requests');
    expect(fill().every(({ kind }) => kind === 'entered')).toBe(true);
    expect([enter(), troubles.length]).toEqual([full, 60]);
  });
});
