import { expect, test } from 'bun:test';
import { createAuth, createFailedKeys } from '../../../gateway/request/auth.ts';
import type { Carried } from '../../../shared/keys/carrier.ts';
import type { Identifier } from '../../../shared/keys/identify.ts';
import type { Identity } from '../../../shared/keys/source.ts';
import { createVirtualClock } from '../virtual-clock.ts';

const KNOWN = { kind: 'known', caller: {} } as Extract<Identity, { kind: 'known' }>; // nobody looks into it
const request = new Request('http://gateway/');
const text = (key: string): Carried => ({ kind: 'text', text: key });

/** Keys named `good…` are good; they are in memory from their second look on. */
function callers() {
  const asked: string[] = [];
  const memory = new Set<string>();
  const keys: Pick<Identifier, 'identify' | 'recall'> = {
    recall: (carried) => (carried.kind === 'text' && memory.has(carried.text) ? KNOWN : undefined),
    identify(carried) {
      if (carried.kind === 'none') return { kind: 'missing-key' };
      if (carried.kind === 'conflict') return { kind: 'invalid-key' };
      asked.push(carried.text);
      if (carried.text === 'unsure') return { kind: 'check-unavailable' };
      if (!carried.text.startsWith('good')) return { kind: 'invalid-key' };
      memory.add(carried.text);
      return KNOWN;
    },
  };
  const { clock, advance } = createVirtualClock();
  const identify = createAuth(keys, createFailedKeys(clock));
  const looks: string[] = [];
  const from = (address: string | null) => ({
    timeout: () => undefined,
    requestIP: () => (looks.push(String(address)), address === null ? null : { address }),
  });
  return {
    asked,
    looks,
    advance,
    ask: (carried: Carried, address: string | null = 'a') => identify(carried, request, from(address)),
  };
}

test('a key in memory is known from anywhere, and nobody looks from where', async () => {
  const { ask, looks, asked } = callers();
  await ask(text('good'));
  for (let i = 0; i < 200; i++) await ask(text(`bad ${i}`));
  looks.length = asked.length = 0;
  expect(ask(text('good'))).toBe(KNOWN);
  expect([looks, asked]).toEqual([[], []]);
});

test('a good key passes from a barred address, of which a hundred keys a second are looked up and no more', async () => {
  const { ask, asked, advance } = callers();
  for (let i = 0; i < 100; i++) await ask(text(`bad ${i}`));
  expect((await ask(text('good'))).kind).toBe('known');
  asked.length = 0;
  expect((await ask(text('good 2'))).kind).toBe('too-many-failed-keys');
  expect(asked).toEqual([]);
  advance(10);
  expect((await ask(text('good 2'))).kind).toBe('known');
  for (let i = 0; i < 1_000; i++) {
    advance(1);
    expect((await ask(text(`worse ${i}`))).kind).toBe('too-many-failed-keys');
  }
  expect(asked.length).toBe(1 + 100);
});

test('a conflict is a failed key; no key, and a check that cannot be done, are not', async () => {
  const { ask } = callers();
  for (let i = 0; i < 200; i++) {
    expect((await ask({ kind: 'none' })).kind).toBe('missing-key');
    expect((await ask(text('unsure'))).kind).toBe('check-unavailable');
  }
  for (let i = 0; i < 100; i++) expect((await ask({ kind: 'conflict' })).kind).toBe('invalid-key');
  expect((await ask({ kind: 'conflict' })).kind).toBe('too-many-failed-keys');
  expect((await ask({ kind: 'none' })).kind).toBe('missing-key');
});

test('a connection without an address is never barred', async () => {
  const { ask } = callers();
  for (let i = 0; i < 200; i++) expect((await ask(text(`bad ${i}`), null)).kind).toBe('invalid-key');
});
