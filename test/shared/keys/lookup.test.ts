import { describe, expect, test } from 'bun:test';
import { type ApiKey, hashOf, keyIdOf } from '../../../shared/keys/api-key.ts';
import { createKeyLookup } from '../../../shared/keys/lookup.ts';
import type { KnownKey } from '../../../shared/keys/source.ts';
import { createVirtualClock } from '../../gateway/virtual-clock.ts';

const nth = (n: number) => `key ${n}` as ApiKey; // the look-up does not read it

/** A source in memory that counts what it is asked, and can be slow and out. */
function looking() {
  const { clock, advance } = createVirtualClock();
  const keys = new Map<string, KnownKey>();
  const state = { reads: 0, revision: 1, isOut: false, waitsMs: 0 };
  const answer = () => {
    advance(state.waitsMs);
    if (state.isOut) throw new Error('locked');
  };
  const lookup = createKeyLookup(
    {
      read(hash) {
        state.reads++;
        answer();
        return keys.get(hash.toString('hex'));
      },
      revision: () => (answer(), state.revision),
    },
    clock,
  );
  lookup.refresh();
  return {
    ...lookup,
    state,
    advance,
    put(key: ApiKey, plan = 'pro') {
      const hash = hashOf(key);
      const caller = { keyId: keyIdOf(hash), accountId: 1, plan, creditsGranted: undefined };
      keys.set(hash.toString('hex'), {
        identity: { kind: 'known', caller },
        suspended: false,
        expiresAtMs: undefined,
      });
    },
    remove: (key: ApiKey) => void keys.delete(hashOf(key).toString('hex')),
    planOf(key: ApiKey) {
      const found = lookup.find(key);
      return typeof found === 'string' ? found : found.identity.caller.plan;
    },
  };
}

describe('a key that nobody has', () => {
  test('is asked for once in ten seconds', () => {
    const { planOf, put, state, advance } = looking();
    for (let i = 0; i < 1_000; i++) expect(planOf(nth(1))).toBe('unknown');
    expect(state.reads).toBe(1);
    put(nth(1));
    advance(9_999);
    expect(planOf(nth(1))).toBe('unknown');
    advance(1);
    expect(planOf(nth(1))).toBe('pro');
  });

  test('is kept among fifty thousand, and the oldest goes first', () => {
    const { planOf, state } = looking();
    for (let n = 0; n < 50_000; n++) planOf(nth(n));
    planOf(nth(50_000));
    const before = state.reads;
    planOf(nth(1));
    expect(state.reads).toBe(before);
    planOf(nth(0));
    expect(state.reads).toBe(before + 1);
  });
});

describe('a key in memory', () => {
  test('is asked for again, once, when the revision moves', () => {
    const { planOf, put, remove, state, refresh } = looking();
    put(nth(1));
    put(nth(2));
    expect([planOf(nth(1)), planOf(nth(2))]).toEqual(['pro', 'pro']);
    put(nth(1), 'scale');
    remove(nth(2));
    expect([planOf(nth(1)), planOf(nth(2))]).toEqual(['pro', 'pro']);
    state.revision++;
    refresh();
    const before = state.reads;
    for (let i = 0; i < 10; i++) expect([planOf(nth(1)), planOf(nth(2))]).toEqual(['scale', 'unknown']);
    expect(state.reads).toBe(before + 2);
  });

  test('is recalled, and forgotten ten minutes after its last use, but not while the source is out', () => {
    const { planOf, recall, put, state, refresh, advance } = looking();
    put(nth(1));
    expect(recall(nth(1))).toBeUndefined();
    planOf(nth(1));
    expect(recall(nth(1))).toMatchObject({ identity: { caller: { plan: 'pro' } } });
    state.isOut = true;
    advance(3 * 3_600_000);
    refresh();
    expect(planOf(nth(1))).toBe('pro');
    state.isOut = false;
    refresh();
    const before = state.reads;
    planOf(nth(1));
    expect(state.reads).toBe(before + 1);
  });
});

describe('of many keys', () => {
  /** Reads keys from `first` on, and gives how many of them the source was asked for. */
  function readOf({ planOf, put, state }: ReturnType<typeof looking>, first: number, count: number): number {
    const before = state.reads;
    for (let n = first; n < first + count; n++) {
      put(nth(n));
      planOf(nth(n));
    }
    return state.reads - before;
  }

  test('those read once leave when 2,048 more have come, and drive out none that was read twice', () => {
    const some = looking();
    readOf(some, 0, 1_000);
    readOf(some, 1_000, 3_048);
    expect(readOf(some, 2_000, 2_048)).toBe(0);
    expect(readOf(some, 0, 1_000)).toBe(1_000);
    readOf(some, 10_000, 10_000);
    expect(readOf(some, 0, 1_000)).toBe(0);
  });
});

test('a source that was waited for in vain is left alone for a quarter of a second', () => {
  const { planOf, state, advance } = looking();
  state.isOut = true;
  state.waitsMs = 25;
  expect(planOf(nth(1))).toBe('unavailable');
  for (let n = 2; n < 100; n++) expect(planOf(nth(n))).toBe('unavailable');
  expect(state.reads).toBe(1);
  advance(250);
  state.isOut = false;
  expect(planOf(nth(1))).toBe('unknown');
});

test('what was looked up elsewhere while a change came is asked for again, be it a key that was made or one that was revoked', () => {
  const { learn, revision, refresh, find, put, remove, planOf, state } = looking();
  const [made, revoked] = [nth(1), nth(2)];
  put(revoked);
  const before = revision();
  const held = find(revoked);
  if (typeof held === 'string') throw new Error('it is not held');
  state.revision++;
  refresh();
  expect(learn(made, undefined, before)).toBe('unknown');
  put(made);
  expect(planOf(made)).toBe('pro');
  learn(revoked, held, before);
  remove(revoked);
  expect(planOf(revoked)).toBe('unknown');
});
