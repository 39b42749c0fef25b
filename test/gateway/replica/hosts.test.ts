import { afterEach, beforeEach, expect, test } from 'bun:test';
import { createSharedAccounts, type SharedAccounts } from '../../../gateway/replica/hosts.ts';
import type { Published } from '../../../gateway/replica/published.ts';
import { createServed, SERVED_MIGRATIONS } from '../../../gateway/replica/served.ts';
import { hashOf, keyIdOf, makeApiKey } from '../../../shared/keys/api-key.ts';
import { ACCOUNTS_MIGRATIONS } from '../../../shared/keys/schema.ts';
import { accountText, keyText, type PublishedRow } from '../../../shared/publication.ts';
import { createVirtualClock } from '../../fakes/chain-clock.ts';
import { opened, silentLog } from '../../started/gateway.ts';
import { NEWS } from './news.ts';

/** A process of a host whose accounts are elsewhere, with a Redis that answers when it is let. */
let finds: string[];
let rows: Map<string, string>;
let isWhole: boolean;
let answers: PromiseWithResolvers<void>;
let shared: SharedAccounts;
beforeEach(async () => {
  [finds, rows, isWhole, answers] = [[], new Map(), true, Promise.withResolvers()];
  const account: PublishedRow = ['a1', accountText({ plan: 'pro', creditsGranted: null, suspended: false })];
  const published: Published = {
    news: () => Promise.resolve(NEWS),
    async find(ids) {
      finds.push(...ids);
      await answers.promise;
      const keys = ids.map((id) => ({ key: [`k${id}`, rows.get(id) ?? ''] as const, account }));
      return { epoch: 'e1', version: 0, isWhole, keys };
    },
    noteUses: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
  shared = createSharedAccounts({
    accounts: opened(':memory:', ACCOUNTS_MIGRATIONS),
    served: createServed(opened(':memory:', SERVED_MIGRATIONS)),
    published,
    clock: createVirtualClock(),
    log: silentLog(),
  });
  await shared.settle(new AbortController().signal);
});
afterEach(() => shared.close());

function newKey(isPublished: boolean): string {
  const text = makeApiKey((bytes) => crypto.getRandomValues(new Uint8Array(bytes)));
  const hash = hashOf(text);
  if (isPublished)
    rows.set(keyIdOf(hash), keyText({ accountId: 1, hash: hash.toString('hex'), expiresAtMs: null }));
  return text;
}
const identify = (text: string) => shared.keys.identify({ kind: 'text', text });

test('a key is looked up once for all requests that wait for it, and then known at once', async () => {
  const key = newKey(true);
  const waiting = Array.from({ length: 100 }, () => identify(key));
  expect([finds.length, waiting.every((each) => each instanceof Promise)]).toEqual([1, true]);
  answers.resolve();
  for (const each of waiting) expect((await each).kind).toBe('known');
  expect(identify(key)).toMatchObject({ kind: 'known', caller: { accountId: 1, plan: 'pro' } });
  expect(finds).toHaveLength(1);
});

test('a key that nobody has is looked up once, and one that may still come again and again', async () => {
  answers.resolve();
  const [none, later] = [newKey(false), newKey(false)];
  expect((await identify(none)).kind).toBe('invalid-key');
  expect(identify(none)).toEqual({ kind: 'invalid-key' });
  isWhole = false;
  for (let i = 0; i < 2; i++) expect((await identify(later)).kind).toBe('check-unavailable');
  expect(finds).toHaveLength(3);
});

test('of keys that are looked up at once there are a thousand, and further ones are not answered', async () => {
  const waiting = Array.from({ length: 1_001 }, () => identify(newKey(true)));
  expect(finds).toHaveLength(1_000);
  expect((await waiting.at(-1))?.kind).toBe('check-unavailable');
  answers.resolve();
  expect((await waiting[0])?.kind).toBe('known');
});
