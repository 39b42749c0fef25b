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
    [
      'Authorization with another case and two spaces',
      (text) => ({ headers: { authorization: `bEARER  ${text}` } }),
    ],
    ['the query parameter api-key', (text) => ({ query: `?api-key=${text}` })],
    [
      'a percent-encoded query parameter',
      (text) => ({ query: `?a=b&api%2Dkey=${text.replace('_', '%5F')}` }),
    ],
    ['the same key twice', (text) => ({ headers: { 'x-token': text }, query: `?api-key=${text}` })],
    ['the same header twice', (text) => ({ headers: { 'x-token': `${text}, ${text}` } })],
    ['a key beside an empty carrier', (text) => ({ headers: { 'x-token': '' }, query: `?api-key=${text}` })],
  ])('%s', async (_name, carriers) => {
    expect((await send(carriers(key))).status).toBe(200);
  });
});

describe('a request without a key gets 401 Missing API key, the id echoed', () => {
  test.each<[string, Carriers]>([
    ['nothing', {}],
    ['an empty header', { headers: { 'x-token': ' ' } }],
    ['an empty parameter', { query: '?api-key=' }],
    ['another scheme', { headers: { authorization: 'Basic YTpi' } }],
    ['a parameter of another name', { query: '?token=sluice_x' }],
  ])('%s', async (_name, carriers) => {
    const answer = await send(carriers);
    expect(answer.status).toBe(401);
    expect(await answer.text()).toBe(MISSING);
  });
});

describe('any other key gets 401 Invalid or inactive API key (spec 5.3)', () => {
  test.each<[string, () => Carriers]>([
    ['an unknown word', () => ({ headers: { 'x-token': 'hello' } })],
    [
      'a well-formed key nobody has',
      () => ({ headers: { 'x-token': 'sluice_0000000000000000000000000000000000000' } }),
    ],
    [
      'a key with one letter changed',
      () => ({ headers: { 'x-token': `${key.slice(0, -1)}${key.endsWith('0') ? '1' : '0'}` } }),
    ],
    ['a key in capitals', () => ({ headers: { 'x-token': key.toUpperCase() } })],
    ['two carriers that differ', () => ({ headers: { 'x-token': key }, query: '?api-key=other' })],
    ['the parameter twice with different values', () => ({ query: `?api-key=${key}&api-key=other` })],
    ['a very long text', () => ({ headers: { 'x-token': 'x'.repeat(8_000) } })],
    ['broken percent-encoding', () => ({ query: '?api-key=%zz' })],
  ])('%s', async (_name, carriers) => {
    const answer = await send(carriers());
    expect(answer.status).toBe(401);
    expect(await answer.text()).toBe(INVALID);
  });

  test('a key of an account without an RPC plan', async () => {
    const answer = await gateway.post(CALL, gateway.key(null));
    expect(answer.status).toBe(401);
    expect(await answer.text()).toBe(INVALID);
  });

  test('a key of an account whose plan the config no longer has', async () => {
    expect((await gateway.post(CALL, gateway.key('gone'))).status).toBe(401);
  });
});

test('a key that is revoked stops working within a second, while the gateway runs', async () => {
  const stop = new AbortController();
  const tending = gateway.gateway.runMaintenance(() => undefined, stop.signal);
  const doomed = gateway.key();
  expect((await gateway.post(CALL, doomed)).status).toBe(200);
  gateway.accounts.run('UPDATE keys SET revoked_at_ms = 1 WHERE last4 = ?', [doomed.slice(-4)]);
  const started = performance.now();
  while ((await gateway.post(CALL, doomed)).status === 200) {
    if (performance.now() - started > 1_000) throw new Error('the key still works after a second');
  }
  stop.abort();
  await tending;
  expect((await gateway.post(CALL, key)).status).toBe(200);
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

test('E2 no key reaches a backend, whichever way it came', async () => {
  await send({ headers: { 'x-token': key, authorization: `Bearer ${key}` }, query: `?api-key=${key}` });
  const { request, text } = backend.seen.at(-1) ?? { request: new Request('http://none'), text: '' };
  expect([...request.headers.entries(), request.url, text].join()).not.toContain(key);
});

test('when the key cannot be checked the answer is 503 Key check unavailable, and known keys go on', async () => {
  await using other = await startGateway({ backends: [{ name: 'a', url: backend.url }] });
  const [known, unseen] = [other.key(), other.key()];
  expect((await other.post(CALL, known)).status).toBe(200);
  other.accounts.run('ALTER TABLE keys RENAME TO hidden');
  const refused = await other.post(CALL, unseen);
  expect(refused.status).toBe(503);
  expect(refused.headers.get('retry-after')).toBe('1');
  expect(await refused.text()).toBe(
    '{"jsonrpc":"2.0","error":{"code":-503,"message":"Key check unavailable"},"id":"a"}',
  );
  expect((await other.post(CALL, known)).status).toBe(200);
  other.accounts.run('ALTER TABLE hidden RENAME TO keys');
  expect((await other.post(CALL, unseen)).status).toBe(200);
});
