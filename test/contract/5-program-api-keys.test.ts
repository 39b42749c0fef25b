import { describe, expect, test } from 'bun:test';
import { PROGRAMS_PATH } from '../../deploys/api/programs.ts';
import { refusalOf, startDeploys, watchedOf } from '../deploys/started.ts';

const MISSING = [401, { error: 'Missing API key' }];
const INVALID = [401, { error: 'Invalid or inactive API key' }];

/** An app that has read the chain, so that a good key gets 200. */
async function started() {
  const deploys = startDeploys(watchedOf('A'));
  await deploys.watch();
  return deploys;
}

describe('a key is sent in one of three ways (spec 5.2)', () => {
  test.each([
    ['header x-token', (key: string) => ['', { 'x-token': key }]],
    ['header Authorization: Bearer', (key: string) => ['', { authorization: `Bearer ${key}` }]],
    ['query api-key', (key: string) => [`?api-key=${key}`, {}]],
    ['query api-key beside program_id', (key: string) => [`?program_id=&api-key=${key}`, {}]],
  ] as [string, (key: string) => [string, Record<string, string>]][])('%s', async (_, carry) => {
    await using deploys = await started();
    expect((await deploys.get(...carry(deploys.key))).status).toBe(200);
    expect(await refusalOf(await deploys.get(...carry('sluice_wrong')))).toEqual(INVALID as never);
  });
});

describe('any active key may ask (spec 1.4, 5.1)', () => {
  test.each([null, 'trial', 'scale', 'a plan that the config has no more'])(
    'of an account with plan %p',
    async (plan) => {
      await using deploys = await started();
      const key = deploys.addKey(plan);
      expect((await deploys.get('', { 'x-token': key })).status).toBe(200);
    },
  );
});

describe('no key is 401 Missing API key (spec 5.3)', () => {
  test.each([
    ['nothing', '', {}],
    ['an empty header', '', { 'x-token': '' }],
    ['another scheme', '', { authorization: 'Basic c2x1aWNl' }],
    ['an empty query', '?api-key=', {}],
  ] as [string, string, Record<string, string>][])('%s', async (_, query, headers) => {
    await using deploys = await started();
    const response = await deploys.get(query, headers);
    expect(response.headers.get('www-authenticate')).toBe('Bearer');
    expect(await refusalOf(response)).toEqual(MISSING as never);
  });
});

describe('an unknown or inactive key is 401 Invalid or inactive API key (spec 5.3)', () => {
  const refused = async (deploys: Awaited<ReturnType<typeof started>>, key: string) => {
    const response = await deploys.get('', { 'x-token': key });
    expect(response.headers.get('www-authenticate')).toBe(
      'Bearer error="invalid_token", error_description="Invalid or inactive API key"',
    );
    expect(await refusalOf(response)).toEqual(INVALID as never);
  };

  test('a key of the right form that nobody made', async () => {
    await using deploys = await started();
    await using elsewhere = startDeploys(watchedOf('A'));
    await refused(deploys, elsewhere.key);
  });

  test.each([
    ['revoked', 'UPDATE keys SET revoked_at_ms = 1'],
    ['expired', 'UPDATE keys SET expires_at_ms = 1'],
    ['of a suspended account', 'UPDATE accounts SET suspended = 1'],
  ])('a key that is %s stops within a quarter of a second', async (_, sql) => {
    await using deploys = await started();
    expect((await deploys.get()).status).toBe(200);
    deploys.store.run(sql);
    await deploys.clock.advance(250);
    await refused(deploys, deploys.key);
  });

  test('two ways with different keys, even when both are active', async () => {
    await using deploys = await started();
    const response = await deploys.get(`?api-key=${deploys.addKey()}`, { 'x-token': deploys.key });
    expect(await refusalOf(response)).toEqual(INVALID as never);
  });
});

test('a new key works at once, without a restart', async () => {
  await using deploys = await started();
  expect((await deploys.get('', { 'x-token': deploys.addKey() })).status).toBe(200);
});

test('no key and no hash of one is in a log line, a metric, an error or the health text', async () => {
  await using deploys = await started();
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
