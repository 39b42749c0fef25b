import { describe, expect, test } from 'bun:test';
import { PROGRAMS_PATH } from '../../deploys/api/programs.ts';
import { readWatched } from '../../deploys/watch/watched.ts';
import builtIn from '../../deploys/watch/programs.json';
import { addressOf } from '../fakes/chain.ts';
import { AUTHORITY, programsOf, refusalOf, startDeploys, watchedOf } from '../deploys/started.ts';

const ask = (deploys: ReturnType<typeof startDeploys>, init?: RequestInit, path = PROGRAMS_PATH) =>
  deploys.answer(new Request(`http://localhost${path}`, init));

test('the endpoint stands where the specification puts it, version and all (spec 4.1, 9)', () => {
  expect(PROGRAMS_PATH).toBe('/api/v1/program-deploys/programs');
});

test('without program_id every watched program is returned, about 115 of them (spec 4.1, 8)', async () => {
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

describe('program_id restricts the result (spec 4.1)', () => {
  const [a, b, c] = [addressOf('A'), addressOf('B'), addressOf('C')];
  test.each([
    ['one address', `?program_id=${b}`, ['B']],
    ['several, still newest first', `?program_id=${c},${a}`, ['A', 'C']],
    ['one twice', `?program_id=${a},${a}`, ['A']],
    ['the parameter twice', `?program_id=${a}&program_id=${b}`, ['A', 'B']],
    ['spaces around addresses', `?program_id=${a},%20${b}%20`, ['A', 'B']],
    ['an encoded comma', `?program_id=${a}%2C${b}`, ['A', 'B']],
    ['a comma too many', `?program_id=${a},`, ['A']],
    ['an address that is not watched', `?program_id=${a},${addressOf('stranger')}`, ['A']],
    ['only an address that is not watched', `?program_id=${addressOf('stranger')}`, []],
    ['an empty parameter, which is as none', '?program_id=', ['A', 'B', 'C']],
    ['another parameter, which is passed over', '?programs=abc', ['A', 'B', 'C']],
  ])('%s', async (_, query, labels) => {
    await using deploys = startDeploys(watchedOf('C', 'B', 'A'));
    for (const [i, address] of [c, b, a].entries()) deploys.chain.deploy(address, 100 + i, AUTHORITY);
    await deploys.watch();
    expect((await programsOf(await deploys.get(query))).map(({ label }) => label)).toEqual(labels);
  });

  test.each([
    ['abc', 'abc'],
    [`${a},abc,def`, 'abc'],
    [`${a}x`, `${a}x`],
    [`${'1'.repeat(31)}0`, `${'1'.repeat(31)}0`],
    ['%22%3Cb%3E', '"<b>'],
    ['x'.repeat(65), `${'x'.repeat(64)}…`],
  ])('a malformed one, %s, is 400 and named', async (value, named) => {
    await using deploys = startDeploys(watchedOf('A'));
    await deploys.watch();
    expect(await refusalOf(await deploys.get(`?program_id=${value}`))).toEqual([
      400,
      { error: `Invalid program_id: ${named}` },
    ]);
  });
});

describe('around the endpoint', () => {
  test('HEAD is GET without a body', async () => {
    await using deploys = startDeploys(watchedOf('A'));
    await deploys.watch();
    const response = await ask(deploys, { method: 'HEAD', headers: { 'x-token': deploys.key } });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toStartWith('application/json');
  });

  test.each(['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])(
    '%s is 405 and says what is allowed',
    async (method) => {
      await using deploys = startDeploys(watchedOf('A'));
      const response = await ask(deploys, { method });
      expect(response.headers.get('allow')).toBe('GET, HEAD');
      expect(await refusalOf(response)).toEqual([405, { error: 'Method not allowed' }]);
    },
  );

  test('a POST with a body that is no JSON is 405 like any other', async () => {
    await using deploys = startDeploys(watchedOf('A'));
    const headers = { 'content-type': 'application/json' };
    expect((await ask(deploys, { method: 'POST', body: '{bad', headers })).status).toBe(405);
  });

  test.each([
    '/openap',
    '/api/v1/program-deploys',
    '/api/v2/program-deploys/programs',
    `${PROGRAMS_PATH}/x`,
    '/%zz',
  ])('%s is 404 in the form of every other error', async (path) => {
    await using deploys = startDeploys(watchedOf('A'));
    expect(await refusalOf(await ask(deploys, {}, path))).toEqual([404, { error: 'Not found' }]);
  });

  test('no answer may be kept by a cache on the way: it belongs to a key and to a minute', async () => {
    await using deploys = startDeploys(watchedOf('A'));
    expect((await deploys.get()).headers.get('cache-control')).toBe('no-store');
    await deploys.watch();
    expect((await deploys.get()).headers.get('cache-control')).toBe('no-store');
  });
});
