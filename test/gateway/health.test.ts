import { describe, expect, test } from 'bun:test';
import { type Backend, WELL } from '../../gateway/upstream/backend.ts';
import { healthOf } from '../../gateway/health.ts';
import type { Journal } from '../../gateway/limits/journal.ts';
import { backendOf } from './upstream/of.ts';
import { createVirtualClock } from './virtual-clock.ts';

const { clock } = createVirtualClock();

function health(backends: readonly Backend[], isFailing = false) {
  const journal: Pick<Journal, 'isFailing'> = { isFailing: () => isFailing };
  return healthOf(backends, journal as Journal, clock); // of the journal only this is asked
}

const node = (name: string) => backendOf({ name });
const archive = (name: string) => backendOf({ name, profile: 'superbank', lanes: ['archive'] });

describe('the health', () => {
  test('is ok when every backend is well', () => {
    expect(health([node('a'), archive('b')])).toEqual({ ok: true, sentence: 'ok' });
  });

  test('names those that are not, each with its reason', () => {
    const [a, b, c, d, e] = [node('a'), node('b'), node('c'), node('d'), node('e')];
    b.standing = { ...WELL, out: 'lagging', lagSlots: 40 };
    c.standing = { ...WELL, out: 'unreachable', reason: 'HTTP 401' };
    d.standing = { ...WELL, out: 'of another chain' };
    e.markFailed(clock);
    expect(health([a, b, c, d, e])).toEqual({
      ok: true,
      sentence:
        'ok, but not these backends: b (40 slots behind), c (HTTP 401), d (of another chain), e (failing)',
    });
  });

  test('is bad when no backend that serves accounts is well, whatever the archives are', () => {
    const a = node('a');
    a.standing = { ...WELL, out: 'unreachable', reason: 'ECONNREFUSED' };
    expect(health([a, archive('b')])).toEqual({
      ok: false,
      sentence: 'no backend is well: a (ECONNREFUSED)',
    });
  });

  test('of a gateway of archives alone is theirs', () => {
    const [a, b] = [archive('a'), archive('b')];
    a.standing = { ...WELL, out: 'unreachable', reason: 'HTTP 404' };
    expect(health([a, b]).ok).toBe(true);
    b.standing = a.standing;
    expect(health([a, b]).ok).toBe(false);
  });

  test('is bad while charges cannot be written', () => {
    expect(health([node('a')], true)).toEqual({
      ok: false,
      sentence: 'charges cannot be written: trials are refused with 503',
    });
  });
});
