import { afterEach, beforeEach, expect, test } from 'bun:test';
import { refusalOf, startDeploys, watchedOf } from '../deploys/started.ts';

let deploys: ReturnType<typeof startDeploys>;
beforeEach(async () => {
  deploys = startDeploys(watchedOf('A'));
  await deploys.watch();
});
afterEach(() => deploys[Symbol.asyncDispose]());

async function statuses(requests: number, key = deploys.key): Promise<number[]> {
  const all: number[] = [];
  for (let i = 0; i < requests; i++) all.push((await deploys.get('', { 'x-token': key })).status);
  return all;
}
const times = (status: number, count: number) => Array.from({ length: count }, () => status);

test('of each key 60 requests in a minute are answered, then 429 says when to go on (§1.1, §3.2 429, §6 program API)', async () => {
  const other = deploys.addKey();
  expect(await statuses(100, 'x')).toEqual(times(401, 100)); // of no key, and counted against none
  expect(await statuses(60)).toEqual(times(200, 60));
  const response = await deploys.get();
  expect(response.headers.get('retry-after')).toBe('60');
  expect(await refusalOf(response)).toEqual([429, { error: 'Rate limit exceeded' }]);
  expect(await statuses(61, other)).toEqual([...times(200, 60), 429]);
  await deploys.clock.advance(60_000);
  expect(await statuses(1)).toEqual([200]);
});
