import { expect, test } from 'bun:test';
import { createAuth, createFailedKeys } from '../../../gateway/request/auth.ts';
import type { Carried } from '../../../shared/keys/carrier.ts';
import { createVirtualClock } from '../virtual-clock.ts';

const request = new Request('http://gateway/');
const text = (key: string): Carried => ({ kind: 'text', text: key });

/** What becomes of keys, of which none is good and `unsure` cannot be checked, from one address or from none. */
function asking(address: string | null = 'a') {
  const keys = {
    recall: () => undefined,
    identify(carried: Carried) {
      if (carried.kind === 'none') return { kind: 'missing-key' } as const;
      const isUnsure = carried.kind === 'text' && carried.text === 'unsure';
      return { kind: isUnsure ? 'check-unavailable' : 'invalid-key' } as const;
    },
  };
  const identify = createAuth(keys, createFailedKeys(createVirtualClock().clock));
  const requestIP = () => (address === null ? null : { address });
  return async (carried: Carried) =>
    (await identify(carried, request, { timeout: () => undefined, requestIP })).kind;
}

test('a conflict is a failed key; no key, and a check that cannot be done, are not', async () => {
  const ask = asking();
  for (let i = 0; i < 200; i++) {
    expect(await ask({ kind: 'none' })).toBe('missing-key');
    expect(await ask(text('unsure'))).toBe('check-unavailable');
  }
  for (let i = 0; i < 100; i++) expect(await ask({ kind: 'conflict' })).toBe('invalid-key');
  expect(await ask({ kind: 'conflict' })).toBe('too-many-failed-keys');
  expect(await ask({ kind: 'none' })).toBe('missing-key');
});

test('a connection without an address is never barred', async () => {
  const ask = asking(null);
  for (let i = 0; i < 200; i++) expect(await ask(text(`bad ${i}`))).toBe('invalid-key');
});
