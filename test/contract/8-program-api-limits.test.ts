import { expect, test } from 'bun:test';
import { refusalOf, startDeploys, watchedOf } from '../deploys/started.ts';

type Deploys = ReturnType<typeof startDeploys>;
async function statuses(deploys: Deploys, requests: number, key = deploys.key): Promise<number[]> {
  const all: number[] = [];
  for (let i = 0; i < requests; i++) all.push((await deploys.get('', { 'x-token': key })).status);
  return all;
}
const times = (status: number, count: number) => Array.from({ length: count }, () => status);
async function started(): Promise<Deploys> {
  const deploys = startDeploys(watchedOf('A'));
  await deploys.watch();
  return deploys;
}

test('60 requests in a minute are answered and the 61st is 429 with Retry-After (spec 7.1, 8)', async () => {
  await using deploys = await started();
  expect(await statuses(deploys, 60)).toEqual(times(200, 60));
  const response = await deploys.get();
  expect(response.headers.get('retry-after')).toBe('60');
  expect(await refusalOf(response)).toEqual([429, { error: 'Rate limit exceeded' }]);
});

test('a request after exactly Retry-After is answered, and a millisecond before its need is not (spec 7.1)', async () => {
  await using deploys = await started();
  await statuses(deploys, 1);
  await deploys.clock.advance(12_345);
  await statuses(deploys, 59);
  const refused = await deploys.get();
  expect(refused.headers.get('retry-after')).toBe('48');
  await deploys.clock.advance(60_000 - 12_345 - 1);
  expect(await statuses(deploys, 1)).toEqual([429]);
  await deploys.clock.advance(48_000 - (60_000 - 12_345 - 1));
  expect(await statuses(deploys, 2)).toEqual([200, 429]);
});

test('a refused request takes nothing: hammering does not put the next answer off', async () => {
  await using deploys = await started();
  await statuses(deploys, 60);
  for (let second = 1; second < 60; second++) {
    await deploys.clock.advance(1_000);
    expect(await statuses(deploys, 3)).toEqual(times(429, 3));
  }
  await deploys.clock.advance(1_000);
  expect(await statuses(deploys, 61)).toEqual([...times(200, 60), 429]);
});

test('the limit is the key’s: two keys of one customer have 60 each (spec 8)', async () => {
  await using deploys = await started();
  const other = deploys.addKey();
  expect(await statuses(deploys, 61)).toEqual([...times(200, 60), 429]);
  expect(await statuses(deploys, 61, other)).toEqual([...times(200, 60), 429]);
});

test('requests without a good key are not counted against anyone', async () => {
  await using deploys = await started();
  for (let i = 0; i < 100; i++) expect((await deploys.get('', { 'x-token': 'x' })).status).toBe(401);
  expect(await statuses(deploys, 60)).toEqual(times(200, 60));
});

test('every program is read once a minute (spec 8)', async () => {
  await using deploys = await started();
  const readings = () => deploys.chain.calls.filter(({ method }) => method === 'getMultipleAccounts').length;
  const before = readings();
  for (let minute = 1; minute <= 3; minute++) {
    await deploys.readAgain();
    expect(readings()).toBe(before + minute);
  }
  const answer: unknown = await (await deploys.get()).json();
  expect(answer).toMatchObject({ checked_at: '2026-11-20T00:03:00.000Z' });
});
