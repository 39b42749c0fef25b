import { describe, expect, test } from 'bun:test';
import { startBackend } from '../fakes/backend.ts';
import { JSON_HEADERS, startGateway } from '../started/gateway.ts';
import { shared } from '../started/shared.ts';

const CALL = '{"jsonrpc":"2.0","id":"a","method":"getSlot"}';
const MISSING = '{"jsonrpc":"2.0","error":{"code":-401,"message":"Missing API key"},"id":"a"}';
const INVALID = '{"jsonrpc":"2.0","error":{"code":-401,"message":"Invalid or inactive API key"},"id":"a"}';

const backend = shared(startBackend());
const gateway = shared(await startGateway({ backends: [{ name: 'a', url: backend.url }] }));
const key = gateway.key();

type Carriers = { headers?: Record<string, string>; query?: string };
const send = ({ headers = {}, query = '' }: Carriers) =>
  fetch(`${gateway.url.href}${query}`, {
    method: 'POST',
    body: CALL,
    headers: { ...JSON_HEADERS, ...headers },
  });

describe('the key is taken from each of the three carriers (spec 5.2)', () => {
  test.each<[string, (key: string) => Carriers]>([
    ['x-token', (text) => ({ headers: { 'x-token': text } })],
    ['Authorization: Bearer', (text) => ({ headers: { authorization: `Bearer ${text}` } })],
    ['the query parameter api-key', (text) => ({ query: `?api-key=${text}` })],
    ['the same header twice', (text) => ({ headers: { 'x-token': `${text}, ${text}` } })],
    ['a key beside an empty carrier', (text) => ({ headers: { 'x-token': '' }, query: `?api-key=${text}` })],
  ])('%s', async (_name, carriers) => {
    expect((await send(carriers(key))).status).toBe(200);
  });
});

describe('a request without a key gets 401 Missing API key, the id echoed', () => {
  test.each<[string, Carriers]>([
    ['an empty parameter', { query: '?api-key=' }],
    ['another scheme', { headers: { authorization: 'Basic YTpi' } }],
    ['a parameter of another name', { query: '?token=sluice_x' }],
  ])('%s', async (_name, carriers) => {
    const answer = await send(carriers);
    expect(answer.status).toBe(401);
    expect(await answer.text()).toBe(MISSING);
  });
});

test.each([
  ['without an RPC plan', null],
  ['whose plan the config no longer has', 'gone'],
])('a key of an account %s is an inactive one (spec 5.3)', async (_name, plan) => {
  const answer = await gateway.post(CALL, gateway.key(plan));
  expect([answer.status, await answer.text()]).toEqual([401, INVALID]);
});

test('an expired key is inactive, and one that expires later is not', async () => {
  const [expired, later] = [gateway.key(), gateway.key()];
  const expire = (text: string, atMs: number) =>
    gateway.accounts.run('UPDATE keys SET expires_at_ms = ? WHERE last4 = ?', [atMs, text.slice(-4)]);
  expire(expired, Date.now() - 1);
  expire(later, Date.now() + 60_000);
  expect((await gateway.post(CALL, expired)).status).toBe(401);
  expect((await gateway.post(CALL, later)).status).toBe(200);
});

test('when the key cannot be checked the answer is 503 Key check unavailable', async () => {
  await using other = await startGateway({ backends: [{ name: 'a', url: backend.url }] });
  const unseen = other.key();
  other.accounts.run('ALTER TABLE keys RENAME TO hidden');
  const refused = await other.post(CALL, unseen);
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
  expect(await refused.text()).toBe(
    '{"jsonrpc":"2.0","error":{"code":-503,"message":"Key check unavailable"},"id":"a"}',
  );
});
