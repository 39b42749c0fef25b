import { expect, test } from 'bun:test';
import { PROGRAMS_PATH } from '../../deploys/api/programs.ts';
import { readWatched } from '../../shared/watched.ts';
import builtIn from '../../shared/programs.json';
import { addressOf } from '../fakes/chain.ts';
import { AUTHORITY, programsOf, refusalOf, startDeploys, watchedOf } from '../deploys/started.ts';

const ask = (deploys: ReturnType<typeof startDeploys>, init?: RequestInit, path = PROGRAMS_PATH) =>
  deploys.answer(new Request(`http://localhost${path}`, init));

test('the endpoint stands where the specification puts it, version and all (§3, §8)', () => {
  expect(PROGRAMS_PATH).toBe('/api/v1/program-deploys/programs');
});

test('without program_id every watched program is returned, about 115 of them (§3)', async () => {
  const watched = readWatched(undefined);
  if (watched.kind !== 'watched') throw new Error('the built-in list must be good');
  await using deploys = startDeploys(watched.programs);
  await deploys.watch();
  const programs = await programsOf(await deploys.get());
  expect(programs).toHaveLength(115);
  expect(new Set(programs.map(({ program_id }) => program_id))).toEqual(
    new Set(builtIn.map(({ program_id }) => program_id)),
  );
});

const [a, b, c] = [addressOf('A'), addressOf('B'), addressOf('C')];

test('program_id restricts the result, which stays newest first (§3)', async () => {
  await using deploys = startDeploys(watchedOf('C', 'B', 'A'));
  for (const [i, address] of [c, b, a].entries()) deploys.chain.deploy(address, 100 + i, AUTHORITY);
  await deploys.watch();
  for (const [query, labels] of [
    [`?program_id=${b}`, ['B']],
    [`?program_id=${c},${a}`, ['A', 'C']],
    [`?program_id=${a},${a}`, ['A']],
    [`?program_id=${a}&program_id=${b}`, ['A', 'B']],
    [`?program_id=${a},%20${b}%20`, ['A', 'B']],
    [`?program_id=${a}%2C${b}`, ['A', 'B']],
    [`?program_id=${a},`, ['A']],
    [`?program_id=${a},${addressOf('not watched')}`, ['A']],
    [`?program_id=${addressOf('not watched')}`, []],
    ['?program_id=', ['A', 'B', 'C']],
    ['?programs=abc', ['A', 'B', 'C']],
  ] as const) {
    const programs = await programsOf(await deploys.get(query));
    expect([query, programs.map(({ label }) => label)]).toEqual([query, [...labels]]);
  }
});

test('a program_id that is no address is 400, and named (§3.2 400)', async () => {
  await using deploys = startDeploys(watchedOf('A'));
  await deploys.watch();
  for (const [value, named] of [
    [`${a},abc,def`, 'abc'],
    [`${a}x`, `${a}x`],
    [`${'1'.repeat(31)}0`, `${'1'.repeat(31)}0`],
    ['%22%3Cb%3E', '"<b>'],
    ['x'.repeat(65), `${'x'.repeat(64)}…`],
  ]) {
    const error = `Invalid program_id: ${named}`;
    expect(await refusalOf(await deploys.get(`?program_id=${value}`))).toEqual([400, { error }]);
  }
});

test('HEAD is GET without a body, and every other method 405, whatever its body', async () => {
  await using deploys = startDeploys(watchedOf('A'));
  await deploys.watch();
  const head = await ask(deploys, { method: 'HEAD', headers: { 'x-token': deploys.key } });
  expect([head.status, head.headers.get('content-type')]).toEqual([200, 'application/json;charset=utf-8']);
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
    const headers = { 'content-type': 'application/json' };
    const response = await ask(deploys, { method, headers, ...(method === 'POST' && { body: '{bad' }) });
    expect(response.headers.get('allow')).toBe('GET, HEAD');
    expect(await refusalOf(response)).toEqual([405, { error: 'Method not allowed' }]);
  }
});

test('any other path is 404 in the form of every other error', async () => {
  await using deploys = startDeploys(watchedOf('A'));
  const around = ['/api/v1/program-deploys', '/api/v2/program-deploys/programs', `${PROGRAMS_PATH}/x`];
  for (const path of ['/openap', '/%zz', ...around])
    expect(await refusalOf(await ask(deploys, {}, path))).toEqual([404, { error: 'Not found' }]);
});

test('no answer may be kept by a cache on the way: it belongs to a key and to a minute', async () => {
  await using deploys = startDeploys(watchedOf('A'));
  expect((await deploys.get()).headers.get('cache-control')).toBe('no-store');
  await deploys.watch();
  expect((await deploys.get()).headers.get('cache-control')).toBe('no-store');
});
