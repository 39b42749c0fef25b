import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { startBackend } from '../fakes/backend.ts';
import { openCaller } from '../fakes/raw-caller.ts';
import { createVirtualClock } from '../gateway/virtual-clock.ts';
import { startGateway } from '../started/gateway.ts';
import { CALL } from '../started/crew.ts';
import { errorText, pair } from './pair.ts';
import { startGatewayProcess } from './gateway-process.ts';
import { askFrom, countingLookUps, guess, guessFrom, guessLike } from './key-guesses.ts';

const FAILURES_MAX = 100;
const HERE = '127.0.0.1';
const ELSEWHERE = '127.0.0.2';

let backend: ReturnType<typeof startBackend>;
beforeEach(() => void (backend = startBackend()));
afterEach(() => backend[Symbol.asyncDispose]());

const backends = () => [{ name: 'a', url: backend.url }];
const start = (plans: Record<string, unknown> = {}) => startGateway({ backends: backends(), plans });

describe('C10 an address that tries many keys is barred', () => {
  test('C10 after a hundred failed keys in ten seconds: 429 with a true Retry-After, with few look-ups (§2.5 429)', async () => {
    const { through, count } = countingLookUps();
    const { clock, advance } = createVirtualClock();
    await using gateway = await startGateway({ backends: backends() }, clock, through);
    expect(new Set(await guessFrom(gateway.url, HERE, FAILURES_MAX))).toEqual(new Set([401]));
    expect(count()).toBe(FAILURES_MAX);
    const refused = await gateway.post(`[${CALL},${CALL}]`, guess());
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '10']);
    const error = errorText(-429, 'Rate limit exceeded', 1);
    expect(await refused.text()).toBe(`[${error},${error}]`);
    expect(new Set(await guessFrom(gateway.url, HERE, 50))).toEqual(new Set([429]));
    expect(count()).toBe(FAILURES_MAX + 1);
    const key = gateway.key();
    advance(9_999);
    expect((await gateway.post(CALL, key)).status).toBe(200);
    expect((await gateway.post(CALL, guess())).status).toBe(429);
    advance(1);
    expect((await gateway.post(CALL, guess())).status).toBe(401);
  });

  test('C10 a good key goes on from there, also when keys have changed; another address is not touched', async () => {
    await using gateway = await start();
    gateway.maintain();
    const key = gateway.key();
    expect(await askFrom(gateway.url, HERE, [{ key }])).toEqual([200]);
    await guessFrom(gateway.url, HERE, FAILURES_MAX + 1);
    expect(await askFrom(gateway.url, HERE, [{ key: guess() }, { key }])).toEqual([429, 200]);
    const other = gateway.key(); // a change that every key in memory is looked up again for
    await Bun.sleep(600); // twice the time in which it is noticed
    expect(await askFrom(gateway.url, HERE, [{ key: other }, { key }])).toEqual([200, 200]);
    expect(await askFrom(gateway.url, ELSEWHERE, [{ key: guess() }, { key: other }])).toEqual([401, 200]);
  });

  test('C10 no header makes it another address, or an exempt one', async () => {
    await using gateway = await start({ slow: { rps: 0.001, burst: 2 } });
    const heads = (n: number) =>
      `x-forwarded-for: 198.51.100.${n}\r\nx-real-ip: 198.51.100.${n}\r\nforwarded: for=198.51.100.${n}\r\n` +
      `user-agent: agent/${n}\r\norigin: https://page${n}.example\r\n`;
    const tries = Array.from({ length: FAILURES_MAX + 1 }, (_, n) => ({ key: guess(), head: heads(n) }));
    expect((await askFrom(gateway.url, HERE, tries)).slice(-2)).toEqual([401, 429]);
    const key = gateway.key('slow');
    const asks = [1, 2, 3].map((n) => ({ key, head: heads(n) }));
    expect(await askFrom(gateway.url, ELSEWHERE, asks)).toEqual([200, 200, 429]);
  });
});

describe('C11 a key is one identity with one bucket in whatever form it comes', () => {
  test('C11 header, Bearer, query, percent-encoded and twice take from one bucket (§1.3)', async () => {
    await using gateway = await start({ slow: { rps: 0.001, burst: 5 } });
    const key = gateway.key('slow');
    const forms: [Record<string, string>, string][] = [
      [{ 'x-token': key }, ''],
      [{ authorization: `Bearer ${key}` }, ''],
      [{}, `?api-key=${key}`],
      [{}, `?api-key=${key.replace('_', '%5F')}`],
      [{ 'x-token': key, authorization: `bearer  ${key}` }, `?api-key=${key}&api-key=${key}`],
    ];
    const ask = async ([headers, query]: (typeof forms)[number]) =>
      (await gateway.post(CALL, undefined, { headers, path: `/${query}` })).status;
    for (const form of forms) expect(await ask(form)).toBe(200);
    for (const form of forms) expect(await ask(form)).toBe(429);
  });

  test('C11 two keys at once, or a key in another case, are no identity, and take from no bucket (§1.3)', async () => {
    await using gateway = await start({ slow: { rps: 0.001, burst: 1 } });
    const [one, two] = [gateway.key('slow'), gateway.key('slow')];
    const ask = async (headers: Record<string, string>, query = '') =>
      (await gateway.post(CALL, undefined, { headers, path: `/${query}` })).status;
    expect(await ask({ 'x-token': one, authorization: `Bearer ${two}` })).toBe(401);
    expect(await ask({ 'x-token': one }, `?api-key=${two}`)).toBe(401);
    expect(await ask({}, `?api-key=${one}&api-key=${two}`)).toBe(401);
    expect(await ask({ 'x-token': one.toUpperCase() })).toBe(401);
    expect(await ask({ 'x-token': one.toLowerCase() })).toBe(401);
    expect([await ask({ 'x-token': one }), await ask({ 'x-token': two })]).toEqual([200, 200]);
  });
});

test('C12 twenty thousand random keys from two hundred addresses do not make the gateway grow', async () => {
  await using gateway = await startGatewayProcess(backend.url);
  const sweep = async (third: number) => {
    const addresses = Array.from({ length: 100 }, (_, n) => `127.0.${third}.${n + 1}`);
    const statuses = await Promise.all(addresses.map((address) => guessFrom(gateway.url, address, 100)));
    expect(new Set(statuses.flat())).toEqual(new Set([401]));
  };
  await sweep(1);
  const before = gateway.resident();
  await sweep(2);
  expect(gateway.resident() - before).toBeLessThan(32 << 20);
  expect((await gateway.post(CALL)).status).toBe(200);
}, 20_000);

describe('E6 a guess learns nothing', () => {
  test('E6 a key that is nearly right is answered like one that is not at all, after one look-up each', async () => {
    const { through, count } = countingLookUps();
    await using gateway = await startGateway({ backends: backends() }, undefined, through);
    const key = gateway.key();
    const near = Array.from({ length: 30 }, () => guessLike(key, 26));
    for (const text of near)
      expect([text.slice(0, 33), text.slice(33, 39) === key.slice(33, 39)]).toEqual([
        key.slice(0, 33),
        false,
      ]);
    const far = Array.from({ length: 30 }, guess);
    const answerTo = async (text: string) => {
      const answer = await gateway.post(CALL, text);
      return `${answer.status} ${await answer.text()}`;
    };
    const answers = new Set<string>();
    for (const text of [...near, ...far]) answers.add(await answerTo(text));
    expect([...answers]).toEqual([`401 ${errorText(-401, 'Invalid or inactive API key', 1)}`]);
    expect(count()).toBe(60);
  });
});

/** For tests that nothing of others matters to. */
const one = (await pair()).gateway;

describe('E7 an odd spelling is a missing or an invalid key, or the key', () => {
  /** The status of a POST whose key headers are exactly these bytes. */
  async function statusOf(url: URL, lines: string, target = '/'): Promise<number> {
    using caller = await openCaller(url);
    const head = `POST ${target} HTTP/1.1\r\nhost: gateway\r\ncontent-type: application/json\r\n`;
    caller.send(
      Buffer.from(
        `${head}content-length: ${CALL.length}\r\nconnection: close\r\n${lines}\r\n${CALL}`,
        'latin1',
      ),
    );
    await caller.ended;
    return Number(/HTTP\/1\.1 (\d{3})/.exec(caller.text())?.[1]);
  }

  test.each<[string, (key: string) => [string, string?], number]>([
    ['empty', () => ['x-token:\r\n'], 401],
    ['15,000 characters', () => [`x-token: ${'k'.repeat(15_000)}\r\n`], 401],
    ['a key with 10,000 characters behind it', (key) => [`x-token: ${key}${'0'.repeat(10_000)}\r\n`], 401],
    ['bytes that are no ASCII', () => ['x-token: sl\xc3\xbcice_\xff\xfe\r\n'], 401],
    ['unicode in the query', () => ['', '/?api-key=%F0%9F%94%91%E2%80%8B'], 401],
    ['a key and an invisible space', (key) => ['', `/?api-key=${key}%E2%80%8B`], 401],
    ['a key and a NUL', (key) => ['', `/?api-key=${key}%00`], 401],
    ['an encoding that breaks off', (key) => ['', `/?api-key=${key}%E2%80`], 401],
    ['every character percent-encoded', (key) => ['', `/?api-key=${encodedAll(key)}`], 200],
    ['encoded twice', (key) => ['', `/?api-key=${encodeURIComponent(encodedAll(key))}`], 401],
    ['bEaReR and three spaces', (key) => [`authorization: bEaReR   ${key}\r\n`], 200],
    ['Bearer and a tab', (key) => [`authorization: Bearer\t${key}\r\n`], 401],
    ['Bearer twice', (key) => [`authorization: Bearer Bearer ${key}\r\n`], 401],
    ['a blank and a tab around', (key) => [`x-token: \t ${key} \t\r\n`], 200],
    ['Bearer and blanks around', (key) => [`authorization:  Bearer  ${key}\t\r\n`], 200],
    ['blanks in the query', (key) => ['', `/?api-key=%20${key}%09`], 200],
    ['a blank of another alphabet before', (key) => [`x-token: \xa0${key}\r\n`], 401],
    ['a blank of another alphabet behind', (key) => [`authorization: Bearer ${key}\xa0\r\n`], 401],
    ['a line separator in the query', (key) => ['', `/?api-key=${key}%E2%80%A8`], 401],
    ['a line feed in the query', (key) => ['', `/?api-key=%0A${key}`], 401],
    ['in quotes', (key) => [`x-token: "${key}"\r\n`], 401],
  ])('E7 %s', async (_, spelling, status) => {
    const [lines, target] = spelling(one.key());
    expect(await statusOf(one.url, lines, target)).toBe(status);
  });
});

const HINT =
  '{"code":-401,"message":"Missing API key","data":{"hint":"Send the key as the header x-token, as Authorization: Bearer KEY, or as the query parameter api-key"}}';

const INVALID = '{"code":-401,"message":"Invalid or inactive API key"}';
const INVALID_CHALLENGE = 'Bearer error="invalid_token", error_description="Invalid or inactive API key"';

test.each<[string, (key: string) => RequestInit & { path?: string }, string, string]>([
  ['missing', () => ({}), '{"code":-401,"message":"Missing API key"}', 'Bearer'],
  ['in ?apiKey=', (key) => ({ path: `/?apiKey=${key}` }), HINT, 'Bearer'],
  ['in ?API-KEY=', (key) => ({ path: `/?API-KEY=${key}` }), HINT, 'Bearer'],
  ['in ?api_key=', (key) => ({ path: `/?a=1&api_key=${key}` }), HINT, 'Bearer'],
  ['in x-api-key', (key) => ({ headers: { 'x-api-key': key } }), HINT, 'Bearer'],
  ['wrong', () => ({ path: '/?api-key=sluice_wrong' }), INVALID, INVALID_CHALLENGE],
  ['one of two', (key) => ({ path: `/?api-key=${key}&api-key=x` }), INVALID, INVALID_CHALLENGE],
])(
  'E7 a key that is %s is refused with a hint how to send one (RFC 6750, 3)',
  async (_, init, error, challenge) => {
    const answer = await one.post(CALL, undefined, init(one.key()));
    expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([401, challenge]);
    expect(await answer.text()).toContain(`"error":${error},`);
  },
);

const encodedAll = (text: string) => [...Buffer.from(text)].map((byte) => `%${byte.toString(16)}`).join('');
