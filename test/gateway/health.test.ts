import { describe, expect, test } from 'bun:test';
import {
  CAUSE_MS,
  createHostHealth,
  type Findings,
  next,
  type Trouble,
  type TroubleState,
} from '../../gateway/health.ts';
import { createVirtualClock } from './virtual-clock.ts';

const RAISE_MS = 2_000;
const CLEAR_MS = 5_000;
const NOW_MS = 86_400_000.390625;

const FACT: Trouble = { what: 'no account', cause: 'none was made', stops: true };
const WAVERING: Trouble = {
  what: 'writes fail',
  cause: 'the disk is full',
  stops: true,
  raiseMs: RAISE_MS,
  clearMs: CLEAR_MS,
};
const OTHER: Trouble = { ...WAVERING, cause: 'database is locked' };

const suspected = (agoMs: number): TroubleState => ({ kind: 'suspected', sinceMs: NOW_MS - agoMs });
const reported = (trouble: Trouble, causeAgoMs = 0): TroubleState => ({
  kind: 'reported',
  trouble,
  causeMs: NOW_MS - causeAgoMs,
});
const fading = (agoMs: number, trouble = WAVERING): TroubleState => ({
  kind: 'fading',
  trouble,
  causeMs: NOW_MS - agoMs,
  sinceMs: NOW_MS - agoMs,
});
const ABSENT: TroubleState = { kind: 'absent' };

describe('M21 a trouble of the host', () => {
  test.each<[string, TroubleState, readonly Trouble[], TroubleState]>([
    ['absent and unseen stays absent', ABSENT, [], ABSENT],
    ['absent, a fact that is seen is reported', ABSENT, [FACT], reported(FACT)],
    ['absent, a wavering one that is seen is suspected', ABSENT, [WAVERING], suspected(0)],
    ['suspected and unseen is absent', suspected(RAISE_MS), [], ABSENT],
    ['suspected and seen too shortly stays', suspected(RAISE_MS - 1), [WAVERING], suspected(RAISE_MS - 1)],
    ['suspected and seen for long enough is reported', suspected(RAISE_MS), [WAVERING], reported(WAVERING)],
    [
      'reported and seen stays, with when its cause was seen',
      reported(WAVERING, 700),
      [OTHER, WAVERING],
      reported(WAVERING),
    ],
    [
      'reported and seen with another cause keeps its own',
      reported(WAVERING, CAUSE_MS - 1),
      [OTHER],
      reported(WAVERING, CAUSE_MS - 1),
    ],
    [
      'reported and long seen with another cause takes that',
      reported(WAVERING, CAUSE_MS),
      [OTHER],
      reported(OTHER),
    ],
    ['reported and unseen, a fact is absent', reported(FACT), [], ABSENT],
    ['reported and unseen, a wavering one fades', reported(WAVERING), [], fading(0)],
    ['fading and unseen too shortly fades on', fading(CLEAR_MS - 1), [], fading(CLEAR_MS - 1)],
    ['fading and unseen for long enough is absent', fading(CLEAR_MS), [], ABSENT],
    ['fading and seen is reported again', fading(CLEAR_MS - 1), [WAVERING], reported(WAVERING)],
    ['fading and seen with another cause keeps its own', fading(1), [OTHER], reported(WAVERING, 1)],
  ])('%s', (_, state, seen, after) => {
    expect(next(state, seen, NOW_MS)).toEqual(after);
  });
});

const found = (part: Partial<Findings> = {}): Findings => ({
  troubles: [],
  unwell: [],
  needed: ['a', 'b'],
  ...part,
});
const unwell = (what: string, cause: string): Trouble => ({ what, cause, stops: false });

describe('the health of the host', () => {
  const once = (...all: readonly Partial<Findings>[]) =>
    createHostHealth(createVirtualClock().clock).update(all.map((part) => found(part)));

  test('is ok, or names what is wrong with its cause, beside the backends that are not well', () => {
    expect(once()).toEqual({ ok: true, sentence: 'ok' });
    const uncounted = { what: 'usage is not written', cause: 'the disk is full', stops: false };
    expect(once({ troubles: [uncounted] })).toEqual({
      ok: true,
      sentence: 'ok, but usage is not written (the disk is full)',
    });
    expect(
      once({ troubles: [FACT, uncounted], unwell: [unwell('b', 'HTTP 401'), unwell('x', 'failing')] }),
    ).toEqual({
      ok: false,
      sentence:
        'no account (none was made); usage is not written (the disk is full); not these backends: b (HTTP 401), x (failing)',
    });
  });

  test('is bad when none of the backends is well of which one is needed', () => {
    const out = [unwell('a', 'ECONNREFUSED'), unwell('b', 'lagging')];
    const sentence = 'no backend is well: a (ECONNREFUSED), b (lagging)';
    expect(once({ unwell: out })).toEqual({ ok: false, sentence });
    expect(once({ unwell: out, needed: ['a', 'b', 'c'] }).ok).toBe(true);
  });

  test('M21 is the worst of what its processes find, each trouble once', () => {
    const sentence = 'no account (none was made); not these backends: a (lagging)';
    expect(once({ troubles: [FACT] }, {}, { troubles: [FACT], unwell: [unwell('a', 'lagging')] })).toEqual({
      ok: false,
      sentence,
    });
  });

  test('M21 changes once and back while writes of several processes succeed now and then, with a line each', () => {
    const { clock, advance } = createVirtualClock();
    const lines: string[] = [];
    const line = (level: string) => (fields: object, text: string) =>
      void lines.push(`${level} ${text} ${JSON.stringify(fields)}`);
    // The two levels that it uses.
    const log = { error: line('error'), info: line('info') } as unknown as Parameters<
      typeof createHostHealth
    >[1];
    const host = createHostHealth(clock, log);
    const said: string[] = [];
    for (let second = 0; second < 60; second++) {
      const fails = [0, 1, 2].map((i) => second < 40 && (second * (i + 3)) % 5 < 2);
      const looks = fails.map((fail, i) =>
        found({ troubles: fail ? [{ ...(i === 1 ? OTHER : WAVERING), raiseMs: 0 }] : [] }),
      );
      const { sentence } = host.update(looks);
      if (said.at(-1) !== sentence) said.push(sentence);
      advance(1_000);
    }
    expect(said).toEqual(['writes fail (the disk is full)', 'ok']);
    expect(lines).toEqual([
      'error writes fail {"cause":"the disk is full"}',
      'info no longer: writes fail {}',
    ]);
  });
});
