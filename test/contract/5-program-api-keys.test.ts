import { afterEach, beforeEach, expect, test } from 'bun:test';
import { PROGRAMS_PATH } from '../../deploys/api/programs.ts';
import { refusalOf, startDeploys, watchedOf } from '../deploys/started.ts';

const MISSING = { error: 'Missing API key' };
const INVALID = { error: 'Invalid or inactive API key' };

/** An app that has read the chain, so that a good key gets 200. */
let deploys: ReturnType<typeof startDeploys>;
beforeEach(async () => {
  deploys = startDeploys(watchedOf('A'));
  await deploys.watch();
});
afterEach(() => deploys[Symbol.asyncDispose]());

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
