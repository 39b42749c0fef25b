import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { choiceOf, createFollow } from '../../../gateway/replica/accounts.ts';
import type { FoundKeys, Head, LoggedChanges, Published } from '../../../gateway/replica/published.ts';
import { createServed, type Served, SERVED_MIGRATIONS } from '../../../gateway/replica/served.ts';
import type { PublishedAccount, PublishedKey, PublishedRow } from '../../../shared/publication.ts';
import { opened } from '../../started/gateway.ts';

let served: Served;
beforeEach(() => {
  served = createServed(opened(':memory:', SERVED_MIGRATIONS));
  served.noteHead(HEAD);
});
afterEach(() => served.store.close());

const HEAD: Head = {
  origin: 'there',
  holder: 't1',
  epoch: 'e1',
  isWhole: true,
  version: 0,
  seq: 0,
  termsId: undefined,
};
const hash = (n: number) => Buffer.alloc(32, n);
const account: PublishedAccount = {
  kind: 'account',
  id: 1,
  plan: 'pro',
  creditsGranted: null,
  suspended: false,
};
const key = (n: number): PublishedKey => ({
  kind: 'key',
  id: `k${n}`,
  hash: hash(n).toString('hex'),
  accountId: 1,
  expiresAtMs: null,
});
const gone = (n: number): PublishedRow => ({ kind: 'gone', subject: 'key', id: `k${n}` });
/** Keys as they were at a version; a number below zero is a key that was not found. */
function found(version: number, ...numbers: number[]): FoundKeys {
  const keys = numbers.map((n) => ({
    id: `k${Math.abs(n)}`,
    found: n > 0 ? { key: key(n), account } : undefined,
  }));
  return { epoch: 'e1', version, isWhole: true, keys };
}
const changes = (from: number, ...rows: PublishedRow[]): LoggedChanges => ({
  epoch: 'e1',
  from,
  rows,
  isGap: false,
  upTo: from + rows.length,
});
const planOf = (n: number) => served.read(hash(n))?.identity.caller.plan;

describe('a change', () => {
  beforeEach(() => void served.take(found(0, 1, 2)));

  test('reaches the keys that were served, and makes no others known', () => {
    served.follow(changes(0, { ...account, plan: 'scale' }, gone(1), key(3)));
    expect([planOf(1), planOf(2), planOf(3)]).toEqual([undefined, 'scale', undefined]);
    expect(served.state().position).toBe(3);
  });

  test('that comes again, late, or from another epoch changes nothing', () => {
    served.follow(changes(0, gone(1)));
    const before = served.state();
    served.follow(changes(0, gone(2)));
    served.follow({ ...changes(1, gone(2)), epoch: 'e0' });
    expect([served.state(), planOf(2)]).toEqual([before, 'pro']);
  });

  test('outdates what was read before it', () => {
    served.follow(changes(0, gone(1)));
    expect([served.take(found(0, 1)), planOf(1)]).toEqual([false, undefined]);
    expect([served.take({ ...found(1, 1), epoch: 'e0' }), planOf(1)]).toEqual([false, undefined]);
    expect([served.take(found(1, 1)), planOf(1)]).toEqual([true, 'pro']);
  });
});

test('a key that Redis does not have is dropped when all are there, and kept while they are written', () => {
  served.take(found(0, 1));
  served.take({ ...found(0, -1), isWhole: false });
  expect(planOf(1)).toBe('pro');
  const { touched } = served.state();
  served.take(found(0, -1));
  expect([planOf(1), served.state().touched]).toEqual([undefined, touched + 1]);
});

test('another epoch keeps what was served; another origin forgets it', () => {
  served.take(found(0, 1));
  served.follow(changes(0, key(1)));
  served.noteTerms({ config: 4, termsId: 'id', terms: '{}' });
  served.noteHead({ ...HEAD, epoch: 'e2' });
  expect([planOf(1), served.state()]).toMatchObject(['pro', { epoch: 'e2', position: 0, config: 4 }]);
  expect(served.state().unverified).toBeGreaterThan(0);
  served.noteHead({ ...HEAD, origin: 'elsewhere' });
  expect([planOf(1), served.state()]).toMatchObject([undefined, { epoch: 'e1', config: 0, terms: null }]);
  served.noteNobody();
  expect(served.state().nobody).toBe(0);
});

describe('following', () => {
  const own = {
    hasPublisher: (token: string) => token === 'own',
    wasPublished: () => false,
    hasAccounts: () => true,
  };
  let head: Head | undefined;
  let log: LoggedChanges;
  let inRedis: number[];
  let finds: (readonly string[])[];
  let follow: () => Promise<number>;
  beforeEach(() => {
    [head, log, inRedis, finds] = [HEAD, changes(0), [1, 2, 3], []];
    const published: Published = {
      head: () => Promise.resolve(head),
      terms: () => Promise.resolve(undefined),
      changes: () => Promise.resolve(log),
      find(ids) {
        finds.push(ids);
        const numbers = ids.map((id) => Number(id.slice(1)));
        return Promise.resolve(
          found(head?.version ?? 0, ...numbers.map((n) => (inRedis.includes(n) ? n : -n))),
        );
      },
      noteUses: () => Promise.resolve(),
      close: () => Promise.resolve(),
    };
    follow = createFollow(served, published, own);
  });
  /** Follows until there is nothing to hurry for. */
  async function settled(): Promise<number> {
    for (let restMs = 0; ;) if ((restMs = await follow()) > 1) return restMs;
  }

  test('compares what was served before with Redis once, and then has the revision of the accounts', async () => {
    served.take(found(0, 1, 2));
    [head, inRedis] = [{ ...HEAD, seq: 9 }, [2]];
    await settled();
    expect([planOf(1), planOf(2), served.state().revision, served.state().unverified]).toEqual([
      undefined,
      'pro',
      9,
      0,
    ]);
    await settled();
    expect(finds).toEqual([['k1', 'k2']]);
  });

  test('waits with that until all is in Redis, and follows changes meanwhile', async () => {
    served.take(found(0, 1, 2));
    [head, inRedis] = [{ ...HEAD, isWhole: false, version: 1, seq: 9 }, []];
    log = changes(0, gone(1));
    await settled();
    expect([planOf(1), planOf(2), served.state().revision]).toEqual([undefined, 'pro', 0]);
    expect(finds).toEqual([]);
  });

  test('compares again when the log no longer has all changes, also in the middle of a comparison', async () => {
    served.take(found(0, 1, 2));
    await follow(); // k1 and k2 are compared
    inRedis = [2];
    head = { ...HEAD, version: 20_000 };
    log = { ...changes(0), upTo: 20_000, isGap: true };
    await settled();
    expect([planOf(1), planOf(2), served.state().position]).toEqual([undefined, 'pro', 20_000]);
  });

  test('looks four times a second, and every two seconds where the own database counts', async () => {
    expect(await settled()).toBe(250);
    head = { ...HEAD, holder: 'own' };
    expect(await follow()).toBe(2_000);
    served.store.run('UPDATE state SET holder = NULL');
    head = undefined;
    expect(await follow()).toBe(2_000);
    served.noteHead(HEAD);
    expect(await follow()).toBe(250);
  });
});

const empty = { hasPublisher: () => false, wasPublished: () => false, hasAccounts: () => false };
const published = { wasPublished: () => true };
const withAccounts = { hasAccounts: () => true };
test.each([
  ['Redis was never reached, and nobody here ever published', null, 0, withAccounts, 'unknown'],
  ['Redis was never reached, and deploys beside published', null, 0, published, 'local'],
  ['nobody publishes', null, 1, withAccounts, 'local'],
  ['nobody publishes, and there is no account here', null, 1, {}, 'unknown'],
  ['nobody publishes, and deploys beside did without an account', null, 1, published, 'local'],
  ['deploys beside publishes', 't2', 0, { hasPublisher: (token: string) => token === 't2' }, 'local'],
  ['another publishes', 't9', 0, { ...published, ...withAccounts }, 'remote'],
] as const)('where keys are read when %s', (_, holder, nobody, own, choice) => {
  expect(choiceOf({ holder, nobody }, { ...empty, ...own })).toBe(choice);
});
