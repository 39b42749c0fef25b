import { Value } from '@sinclair/typebox/value';
import { FormatRegistry } from '@sinclair/typebox';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import { PROGRAMS_PATH } from '../../deploys/api/programs.ts';
import { ProgramsAnswer } from '../../deploys/api/schema.ts';
import builtIn from '../../shared/programs.json';
import { readWatched } from '../../shared/watched.ts';
import {
  addressOf,
  LOADER_V2,
  LOADER_V3,
  LOADER_V4,
  programBytes,
  programV4Bytes,
  startChain,
  SYSTEM,
} from '../fakes/chain.ts';
import { AUTHORITY, programsOf, refusalOf, startDeploys, watchedOf } from '../deploys/started.ts';

beforeAll(() => FormatRegistry.Set('date-time', (text) => !Number.isNaN(Date.parse(text))));

test('an upgradeable program has every field and no other, with the block time of its deploy (§3)', async () => {
  await using deploys = startDeploys(watchedOf('Raydium'));
  deploys.chain.deploy(addressOf('Raydium'), 900, AUTHORITY);
  deploys.chain.blockTimes.set(900, 1_700_000_000);
  await deploys.clock.advance(412);
  await deploys.watch();
  await deploys.blockTimes(1);
  const answer: unknown = await (await deploys.get()).json();
  expect(answer).toEqual({
    checked_at: '2026-11-20T00:00:00.412Z',
    programs: [
      {
        program_id: addressOf('Raydium'),
        label: 'Raydium',
        status: 'upgradeable',
        upgrade_authority: AUTHORITY,
        deploy_slot: 900,
        deployed_at: '2023-11-14T22:13:20Z',
      },
    ],
  });
  expect([...Value.Errors(ProgramsAnswer, answer)]).toEqual([]);
  expect(Value.Check(ProgramsAnswer, { ...Object(answer), extra: 1 })).toBe(false);
});

const program = addressOf('program');
type Chain = ReturnType<typeof startDeploys>['chain'];
const owned = (owner: string, data: Uint8Array) => (chain: Chain) =>
  void chain.accounts.set(program, { owner, data });

test.each([
  ['has an upgrade authority', (chain) => chain.deploy(program, 9, AUTHORITY), 'upgradeable', AUTHORITY],
  ['lost its upgrade authority', (chain) => chain.deploy(program, 9), 'frozen', null],
  ['is deployed on loader v4', owned(LOADER_V4, programV4Bytes(9, AUTHORITY, 1)), 'upgradeable', AUTHORITY],
  ['is retracted on loader v4', owned(LOADER_V4, programV4Bytes(9, AUTHORITY, 0)), 'upgradeable', AUTHORITY],
  ['is finalized on loader v4', owned(LOADER_V4, programV4Bytes(9, AUTHORITY, 2)), 'frozen', null],
  ['has a loader without upgrades', owned(LOADER_V2, Buffer.from('\x7fELF')), 'other_loader', null],
  ['has no account', () => {}, 'missing', null],
  ['has no ProgramData account', owned(LOADER_V3, programBytes(addressOf('nowhere'))), 'missing', null],
  ['is a balance at a closed address', owned(SYSTEM, Buffer.alloc(0)), 'missing', null],
] as [string, (chain: Chain) => void, string, string | null][])(
  'a program that %s has that status (§3.1)',
  async (_, arrange, status, upgrade_authority) => {
    await using deploys = startDeploys([{ address: program, label: 'Program' }]);
    arrange(deploys.chain);
    await deploys.watch();
    const [record] = await programsOf(await deploys.get());
    const deploy_slot = status === 'upgradeable' || status === 'frozen' ? 9 : null;
    expect(record).toMatchObject({ status, upgrade_authority, deploy_slot, deployed_at: null });
  },
);

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

test('no answer may be kept by a cache on the way: it belongs to a key and to a minute', async () => {
  await using deploys = startDeploys(watchedOf('A'));
  expect((await deploys.get()).headers.get('cache-control')).toBe('no-store');
  await deploys.watch();
  expect((await deploys.get()).headers.get('cache-control')).toBe('no-store');
});

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

describe('once the chain has been read', () => {
  /** An app that has read the chain, so that a good key gets 200. */
  let deploys: ReturnType<typeof startDeploys>;
  beforeEach(async () => {
    deploys = startDeploys(watchedOf('A'));
    await deploys.watch();
  });
  afterEach(() => deploys[Symbol.asyncDispose]());

  const ask = (init?: RequestInit, path = PROGRAMS_PATH) =>
    deploys.answer(new Request(`http://localhost${path}`, init));

  const MISSING = { error: 'Missing API key' };
  const INVALID = { error: 'Invalid or inactive API key' };

  const withKey = (key: string) => deploys.get('', { 'x-token': key });

  test.each<[string, (key: string) => [string, Record<string, string>]]>([
    ['the header x-token', (key) => ['', { 'x-token': key }]],
    ['the header Authorization: Bearer', (key) => ['', { authorization: `Bearer ${key}` }]],
    ['the query api-key beside program_id', (key) => [`?program_id=&api-key=${key}`, {}]],
  ])('a key is sent in %s (§1.3)', async (_, carry) => {
    expect((await deploys.get(...carry(deploys.key))).status).toBe(200);
    expect(await refusalOf(await deploys.get(...carry('sluice_wrong')))).toEqual([401, INVALID]);
  });

  test.each([null, 'trial', 'a plan that the config has no more'])(
    'a key of an account with plan %p may ask, at once and without a restart (§1.4)',
    async (plan) => expect((await withKey(deploys.addKey(plan))).status).toBe(200),
  );

  test('no key is 401 Missing API key, and a key that nobody made 401 Invalid or inactive (§3.2 401)', async () => {
    const challenge = 'Bearer error="invalid_token", error_description="Invalid or inactive API key"';
    await using elsewhere = startDeploys(watchedOf('A'));
    for (const [headers, text, challenged] of [
      [{}, MISSING, 'Bearer'],
      [{ 'x-token': elsewhere.key }, INVALID, challenge],
    ] as const) {
      const response = await deploys.get('', headers);
      expect(response.headers.get('www-authenticate')).toBe(challenged);
      expect(await refusalOf(response)).toEqual([401, text]);
    }
  });

  test.each([
    ['revoked', 'UPDATE keys SET revoked_at_ms = 1'],
    ['expired', 'UPDATE keys SET expires_at_ms = 1'],
    ['of a suspended account', 'UPDATE accounts SET suspended = 1'],
  ])('a key that is %s stops within a quarter of a second (§1.5)', async (_, sql) => {
    expect((await deploys.get()).status).toBe(200);
    deploys.store.run(sql);
    await deploys.clock.advance(250);
    expect(await refusalOf(await deploys.get())).toEqual([401, INVALID]);
  });

  test('no key and no hash of one is in a log line, a metric, an error or the health text (§1.2)', async () => {
    for (const query of ['', '?program_id=abc']) await deploys.get(query);
    await deploys.get(`?api-key=${deploys.key}`, {});
    const asked = (path: string) => deploys.answer(new Request(`http://localhost${path}`));
    const seen = [
      JSON.stringify(deploys.lines),
      await (await deploys.answerMetrics(new Request('http://localhost/metrics'))).text(),
      await (await asked('/health')).text(),
      await (await asked(`${PROGRAMS_PATH}?api-key=${deploys.key}x`)).text(),
    ].join('\n');
    expect(seen).toContain('deploys_api_answers_total{status="200"} 2');
    expect(seen).not.toContain(deploys.key);
    expect(seen).not.toContain(deploys.key.slice(7, 39));
  });

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

  test('503 Key check unavailable when the database does not answer and the key is not in memory (§3.2 503)', async () => {
    const unseen = deploys.addKey();
    await deploys.get();
    deploys.store.run('ALTER TABLE keys RENAME TO keys_gone');
    await deploys.clock.advance(1_000);
    expect((await deploys.get()).status).toBe(200);
    const response = await deploys.get('', { 'x-token': unseen });
    expect(response.headers.get('retry-after')).toBe('1');
    expect(await refusalOf(response)).toEqual([503, { error: 'Key check unavailable' }]);
  });

  test('HEAD is GET without a body, and every other method 405, whatever its body', async () => {
    const head = await ask({ method: 'HEAD', headers: { 'x-token': deploys.key } });
    expect([head.status, head.headers.get('content-type')]).toEqual([200, 'application/json;charset=utf-8']);
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      const headers = { 'content-type': 'application/json' };
      const response = await ask({ method, headers, ...(method === 'POST' && { body: '{bad' }) });
      expect(response.headers.get('allow')).toBe('GET, HEAD');
      expect(await refusalOf(response)).toEqual([405, { error: 'Method not allowed' }]);
    }
  });

  test('any other path is 404 in the form of every other error', async () => {
    const around = ['/api/v1/program-deploys', '/api/v2/program-deploys/programs', `${PROGRAMS_PATH}/x`];
    for (const path of ['/openap', '/%zz', ...around])
      expect(await refusalOf(await ask({}, path))).toEqual([404, { error: 'Not found' }]);
  });
});
