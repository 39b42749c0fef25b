import { expect, test } from 'bun:test';
import { startChain } from '../fakes/chain.ts';
import { refusalOf, startDeploys, watchedOf } from '../deploys/started.ts';

const NOT_YET = [503, { error: 'not available yet' }];

test('503 not available yet until the first good reading (§3.2 503)', async () => {
  const chain = startChain();
  chain.fault = () => new Response('<html>', { status: 502 });
  await using deploys = startDeploys(watchedOf('A'), [chain]);
  const watching = deploys.watch();
  while (chain.calls.length === 0) await new Promise((resolve) => setImmediate(resolve));
  const refused = await deploys.get();
  expect(refused.headers.get('retry-after')).toBe('1');
  expect(await refusalOf(refused)).toEqual(NOT_YET as never);
  chain.fault = undefined;
  await deploys.clock.advance(60_000);
  await watching;
  expect((await deploys.get()).status).toBe(200);
});

test('a chain that is away later leaves the last reading and its checked_at (§3)', async () => {
  await using deploys = startDeploys(watchedOf('A'));
  await deploys.watch();
  const before: unknown = await (await deploys.get()).json();
  deploys.chain.fault = () => new Response('<html>', { status: 502 });
  await deploys.clock.advance(3_600_000);
  const response = await deploys.get();
  expect([response.status, await response.json()]).toEqual([200, before] as never);
});

test('503 Key check unavailable when the database does not answer and the key is not in memory (§3.2 503)', async () => {
  await using deploys = startDeploys(watchedOf('A'));
  await deploys.watch();
  const unseen = deploys.addKey();
  await deploys.get();
  deploys.store.run('ALTER TABLE keys RENAME TO keys_gone');
  await deploys.clock.advance(1_000);
  expect((await deploys.get()).status).toBe(200);
  const response = await deploys.get('', { 'x-token': unseen });
  expect(response.headers.get('retry-after')).toBe('1');
  expect(await refusalOf(response)).toEqual([503, { error: 'Key check unavailable' }]);
});

test('the order of checks is key, rate, availability, parameters; every error is JSON with one text', async () => {
  await using deploys = startDeploys(watchedOf('A'));
  const ask = (headers?: Record<string, string>) => deploys.get('?program_id=abc', headers);
  const responses = [await ask({}), await ask({ 'x-token': 'x' })];
  for (let i = 0; i < 60; i++) responses[2] = await ask();
  responses.push(await ask());
  await deploys.watch();
  await deploys.clock.advance(60_000);
  responses.push(await ask());
  expect(responses.map(({ status }) => status)).toEqual([401, 401, 503, 429, 400]);
  for (const response of responses) {
    expect(response.headers.get('content-type')).toStartWith('application/json');
    expect(Object.keys(Object(await response.json()))).toEqual(['error']);
  }
});
