import { describe, expect, test } from 'bun:test';
import { PROGRAMS_PATH } from '../../deploys/api/programs.ts';
import { createApp } from '../../deploys/server.ts';
import { startChain } from '../fakes/chain.ts';
import { refusalOf, startDeploys, WATCHER_KEY, watchedOf } from '../deploys/started.ts';

const NOT_YET = [503, { error: 'not available yet' }];

describe('503 not available yet (spec 7.1)', () => {
  test('until the first reading of this run has succeeded', async () => {
    await using deploys = startDeploys(watchedOf('A'));
    const response = await deploys.get();
    expect(response.headers.get('retry-after')).toBe('1');
    expect(await refusalOf(response)).toEqual(NOT_YET as never);
    await deploys.watch();
    expect((await deploys.get()).status).toBe(200);
  });

  test('while the chain cannot be read, and the first good reading ends it', async () => {
    const chain = startChain();
    chain.fault = () => new Response('<html>', { status: 502 });
    await using deploys = startDeploys(watchedOf('A'), [chain]);
    const watching = deploys.watch();
    while (chain.calls.length === 0) await new Promise((resolve) => setImmediate(resolve));
    expect(await refusalOf(await deploys.get())).toEqual(NOT_YET as never);
    chain.fault = undefined;
    await deploys.clock.advance(60_000);
    await watching;
    expect((await deploys.get()).status).toBe(200);
  });

  test('but never again after it: a chain that is away leaves the last reading and its checked_at', async () => {
    await using deploys = startDeploys(watchedOf('A'));
    await deploys.watch();
    const before: unknown = await (await deploys.get()).json();
    deploys.chain.fault = () => new Response('<html>', { status: 502 });
    await deploys.clock.advance(3_600_000);
    const response = await deploys.get();
    expect([response.status, await response.json()]).toEqual([200, before] as never);
  });
});

describe('503 Key check unavailable (spec 7.1)', () => {
  test('when the key is not known yet and the database does not answer', async () => {
    await using deploys = startDeploys(watchedOf('A'));
    await deploys.watch();
    deploys.store.run('ALTER TABLE keys RENAME TO keys_gone');
    const response = await deploys.get();
    expect(response.headers.get('retry-after')).toBe('1');
    expect(await refusalOf(response)).toEqual([503, { error: 'Key check unavailable' }]);
  });

  test('while a key in memory goes on working', async () => {
    await using deploys = startDeploys(watchedOf('A'));
    await deploys.watch();
    await deploys.get();
    deploys.store.run('ALTER TABLE keys RENAME TO keys_gone');
    await deploys.clock.advance(1_000);
    expect((await deploys.get()).status).toBe(200);
  });
});

describe('the order of checks is key, rate, availability, parameters', () => {
  test('a bad key is told before anything else', async () => {
    await using deploys = startDeploys(watchedOf('A'));
    expect((await deploys.get('?program_id=abc', {})).status).toBe(401);
  });

  test('the rate is told before availability, and refusals of it count like answers', async () => {
    await using deploys = startDeploys(watchedOf('A'));
    for (let i = 0; i < 60; i++) expect((await deploys.get('?program_id=abc')).status).toBe(503);
    expect((await deploys.get('?program_id=abc')).status).toBe(429);
  });

  test('availability is told before parameters', async () => {
    await using deploys = startDeploys(watchedOf('A'));
    expect(await refusalOf(await deploys.get('?program_id=abc'))).toEqual(NOT_YET as never);
  });
});

test('what should not have happened is 500 Internal error, and its message stays inside', async () => {
  const broken: unknown[] = [];
  const answered: number[] = [];
  const app = createApp({
    answerPrograms: () => {
      throw new Error(WATCHER_KEY);
    },
    health: () => ({ isWell: true, sentence: 'ok' }),
    noteAnswer: (status) => void answered.push(status),
    noteBroken: (error) => void broken.push(error),
    publicUrl: new URL('https://console.example.com'),
  });
  const response = await app.handle(new Request(`http://localhost${PROGRAMS_PATH}`));
  expect(response.headers.get('content-type')).toStartWith('application/json');
  expect(await refusalOf(response)).toEqual([500, { error: 'Internal error' }]);
  expect([broken, answered]).toEqual([[new Error(WATCHER_KEY)], [500]]);
});

test('every error is JSON with one text', async () => {
  await using deploys = startDeploys(watchedOf('A'));
  const responses = [
    await deploys.get('', {}),
    await deploys.get('', { 'x-token': 'x' }),
    await deploys.get(),
  ];
  await deploys.watch();
  responses.push(await deploys.get('?program_id=abc'));
  for (let i = 0; i < 60; i++) await deploys.get();
  responses.push(await deploys.get());
  expect(responses.map(({ status }) => status)).toEqual([401, 401, 503, 400, 429]);
  for (const response of responses) {
    expect(response.headers.get('content-type')).toStartWith('application/json');
    expect(Object.keys(Object(await response.json()))).toEqual(['error']);
  }
});
