import { expect, test } from 'bun:test';
import { createVet, isPublicAddress } from '../../../deploys/delivery/policy.ts';
import { createVirtualClock } from '../../fakes/chain-clock.ts';

const never = new AbortController().signal;
const failing = (code: string) => () => Promise.reject(Object.assign(new Error('no'), { code }));

function vetOf(resolve: (host: string) => Promise<readonly string[]>, clock = createVirtualClock()) {
  return createVet({ resolve, isPublic: isPublicAddress }, clock);
}

test('a name with public addresses is pinned to them, in their order', async () => {
  const vet = vetOf(() => Promise.resolve(['2606:4700::1111', '1.1.1.1']));
  expect(await vet('a.example', never)).toEqual({
    kind: 'public',
    pins: [
      { address: '2606:4700::1111', family: 6 },
      { address: '1.1.1.1', family: 4 },
    ],
  });
});

test.each([
  [['10.0.0.1']],
  [['1.1.1.1', '10.0.0.1']],
  [['1.1.1.1', '::1']],
  [['::ffff:1.1.1.1']],
  [['64:ff9b::1.1.1.1']],
  [['fe80::1%eth0']],
  [['nonsense']],
  [[...new Array<string>(16).fill('1.1.1.1'), '127.0.0.1']], // oxlint-disable-line unicorn/no-new-array -- sixteen
])('one address that is not public spoils %j (E15)', async (addresses) => {
  const vetted = await vetOf(() => Promise.resolve(addresses))('a.example', never);
  expect(vetted).toEqual({ kind: 'not-public', addresses: addresses.slice(0, 16) });
});

test('at most 16 addresses are pinned', async () => {
  const addresses = Array.from({ length: 40 }, (_, i) => `1.1.1.${i}`);
  const vetted = await vetOf(() => Promise.resolve(addresses))('a.example', never);
  expect(vetted.kind === 'public' && vetted.pins.map(({ address }) => address)).toEqual(
    addresses.slice(0, 16),
  );
});

test('an IP address is vetted without a question', async () => {
  const vet = vetOf(() => Promise.reject(new Error('must not be called')));
  expect(await vet('1.1.1.1', never)).toMatchObject({ kind: 'public' });
  expect(await vet('2606:4700::1111', never)).toMatchObject({ kind: 'public' });
  expect(await vet('127.0.0.1', never)).toMatchObject({ kind: 'not-public' });
  expect(await vet('::ffff:7f00:1', never)).toMatchObject({ kind: 'not-public' });
});

test('no address is an answer; trouble is another, under its code (E13)', async () => {
  expect(await vetOf(() => Promise.resolve([]))('a.example', never)).toEqual({ kind: 'no-address' });
  expect(await vetOf(failing('ESERVFAIL'))('a.example', never)).toEqual({
    kind: 'unresolved',
    code: 'ESERVFAIL',
  });
  expect(await vetOf(failing('ETIMEOUT'))('a.example', never)).toEqual({ kind: 'timed-out' });
  expect(await vetOf(failing('a secret'))('a.example', never)).toEqual({
    kind: 'unresolved',
    code: 'unknown',
  });
});

test('whoever asks for a host that is being looked up shares the lookup, and the next one asks again', async () => {
  const lookups: ((answer: string[]) => void)[] = [];
  const vet = vetOf(() => new Promise((resolve) => lookups.push(resolve)));
  const both = Promise.all([vet('a.example', never), vet('a.example', never)]);
  const other = vet('b.example', never);
  expect(lookups).toHaveLength(2);
  for (const answer of lookups) answer(['1.1.1.1']);
  expect((await both).map(({ kind }) => kind)).toEqual(['public', 'public']);
  await other;
  const again = vet('a.example', never);
  expect(lookups).toHaveLength(3);
  lookups[2]?.(['127.0.0.1']);
  expect(await again).toMatchObject({ kind: 'not-public' });
});

test('a silent name has its 3 s, and others have theirs beside it (E13)', async () => {
  const clock = createVirtualClock();
  const vet = vetOf(
    (host) => (host === 'a.example' ? new Promise(() => {}) : Promise.resolve(['1.1.1.1'])),
    clock,
  );
  const kinds: string[] = [];
  const silent = vet('a.example', never).then(({ kind }) => kinds.push(kind));
  expect(await vet('b.example', never)).toMatchObject({ kind: 'public' });
  await clock.advance(2_999);
  expect(kinds).toEqual([]);
  await clock.advance(1);
  await silent;
  expect([kinds, clock.sleepers()]).toEqual([['timed-out'], 0]);
});

test('at most 1,024 lookups are under way', async () => {
  let started = 0;
  const clock = createVirtualClock();
  const vet = vetOf(() => (started++, new Promise(() => {})), clock);
  const all = Array.from({ length: 1_025 }, (_, i) => vet(`${i}.example`, never));
  expect(await all[1_024]).toEqual({ kind: 'unresolved', code: 'EBUSY' });
  expect(started).toBe(1_024);
  await clock.advance(3_000);
  await Promise.all(all);
});

test('whoever gives up does not wait for the answer', async () => {
  const stop = new AbortController();
  const vetting = vetOf(() => new Promise(() => {}))('a.example', stop.signal);
  stop.abort();
  expect(await vetting).toEqual({ kind: 'timed-out' });
});
