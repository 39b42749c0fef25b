import { expect, test } from 'bun:test';
import { createAuth, createFailedKeys } from '../../../gateway/request/auth.ts';
import type { Carried } from '../../../shared/keys/carrier.ts';
import { callerOf } from '../usage/started.ts';
import { createVirtualClock } from '../virtual-clock.ts';

const text = (key: string): Carried => ({ kind: 'text', text: key });

/** What becomes of keys, of which only `good` is, and `unsure` cannot be checked, from one address or from none. */
function asking(from: Readonly<{ address: string | undefined }> = { address: 'a' }) {
  let lookups = 0;
  const keys = {
    recall: () => undefined,
    identify(carried: Carried) {
      if (carried.kind === 'none') return { kind: 'missing-key' } as const;
      lookups++;
      const key = carried.kind === 'text' ? carried.text : '';
      if (key === 'good') return { kind: 'known', caller: callerOf(1) } as const;
      return { kind: key === 'unsure' ? 'check-unavailable' : 'invalid-key' } as const;
    },
  };
  const { clock, advance } = createVirtualClock();
  const identify = createAuth(keys, createFailedKeys(clock));
  const ask = async (carried: Carried) => (await identify(carried, from)).kind;
  return { ask, advance, lookups: () => lookups };
}

test('of keys from a barred address a hundred are looked up in each second, and the good ones pass', async () => {
  const { ask, advance, lookups } = asking();
  for (let i = 0; i < 100; i++) await ask(text(`bad ${i}`));
  for (const sum of [200, 300]) {
    for (let ms = 0; ms < 1_000; ms++) {
      expect(await ask(text(`worse ${ms}`))).toBe('too-many-failed-keys');
      advance(1);
    }
    expect(lookups()).toBe(sum);
  }
  expect(await ask(text('good'))).toBe('known');
  expect(await ask(text('good'))).toBe('too-many-failed-keys');
});

test('C10 a conflict is a failed key; no key, and a check that cannot be done, are not', async () => {
  const { ask } = asking();
  for (let i = 0; i < 200; i++) {
    expect(await ask({ kind: 'none' })).toBe('missing-key');
    expect(await ask(text('unsure'))).toBe('check-unavailable');
  }
  for (let i = 0; i < 100; i++) expect(await ask({ kind: 'conflict' })).toBe('invalid-key');
  expect(await ask({ kind: 'conflict' })).toBe('too-many-failed-keys');
  expect(await ask({ kind: 'none' })).toBe('missing-key');
});

test('a connection without an address is never barred', async () => {
  const { ask } = asking({ address: undefined });
  for (let i = 0; i < 200; i++) expect(await ask(text(`bad ${i}`))).toBe('invalid-key');
});
