import { describe, expect, test } from 'bun:test';
import { result } from '../fakes/backend.ts';
import { createVirtualClock } from '../gateway/virtual-clock.ts';
import { callText as call, errorText as error, pair, resultText } from './pair.ts';

const calls = (count: number) => Array.from({ length: count }, (_, i) => call(i, 'getBlockHeight', ''));

const virtual = createVirtualClock();
const rows = {
  gateway: { max_body_bytes: 600_000 },
  plans: { four: { rps: 1, burst: 4, max_batch: 20 }, trial: { rps: 1_000, burst: 1_000, max_batch: 20 } },
};
const { backend, gateway } = await pair(rows, virtual.clock, (seen) => result(seen, '7'));

/** Status and body of a batch, and how many calls reached the backend. */
async function ask(elements: readonly string[] | string, key: string) {
  const before = backend.seen.length;
  const body = typeof elements === 'string' ? elements : `[${elements.join()}]`;
  const answer = await gateway.post(body, key);
  const text = (await answer.text()).replaceAll('\n', '');
  return { status: answer.status, text, sent: backend.seen.length - before };
}

const answers = (...ids: readonly string[]) => `[${ids.map((id) => resultText(7, id)).join()}]`;

test('a batch of small answers has a length', async () => {
  const answer = await gateway.post(`[${calls(3).join()}]`, gateway.key());
  expect(answer.headers.get('content-length')).toBe(String((await answer.arrayBuffer()).byteLength));
});

test('B1 every element of a batch pays its token: three bursts at once are paid off before the next call (§2.4.1)', async () => {
  const key = gateway.key('four');
  const whole = await ask(calls(12), key);
  expect([whole.status, whole.sent]).toEqual([200, 12]);
  const refused = await ask([call('1'), call('"b"')], key);
  const [one, other] = ['1', '"b"'].map((id) => error(-429, 'Rate limit exceeded', id));
  expect(refused).toEqual({ status: 429, text: `[${one},${other}]`, sent: 0 });
  // 4 - 12 = -8 tokens: the ninth second brings the first whole one.
  virtual.advance(8_999);
  expect((await ask(call('1'), key)).status).toBe(429);
  virtual.advance(1);
  expect((await ask(call('1'), key)).status).toBe(200);
});

describe('B2 every element passes the rules of a call', () => {
  const notObject = error(-32600, 'Invalid request: not an object', 'null');
  test.each([
    ['a batch in a batch', `[${call('1')}]`, notObject],
    ['an empty batch in a batch', '[]', notObject],
    ['an empty object', '{}', error(-32600, 'Invalid request: jsonrpc must be \\"2.0\\"', 'null')],
    ['an unknown method', call('5', 'nope'), error(-32601, 'Method not found', '5')],
  ])('B2 %s', async (_name, element, answer) => {
    const key = gateway.key('scale');
    expect(await ask([element], key)).toEqual({ status: 200, text: `[${answer}]`, sent: 0 });
    const beside = await ask([call('1'), element], key);
    expect(beside.text).toBe(`[${resultText(7)},${answer}]`);
  });

  test('B2 the history flag of getSignatureStatuses reaches a backend as false from a batch too', async () => {
    const flag = '[["sig"],{"searchTransactionHistory":true}]';
    await ask([call('1', 'getSignatureStatuses', flag)], gateway.key('scale'));
    expect(backend.seen.at(-1)?.params).toEqual([['sig'], { searchTransactionHistory: false }]);
  });

  test('B2 white space before the bracket changes nothing, and a byte order mark is not JSON', async () => {
    const key = gateway.key('scale');
    expect((await ask(` \r\n\t[ ${call('1')} , ${call('2')} ] `, key)).text).toBe(answers('1', '2'));
    expect(await ask(`\uFEFF[${call('1')}]`, key)).toEqual({
      status: 400,
      text: error(-32700, 'Parse error', 'null'),
      sent: 0,
    });
  });
});

test('B3 a batch in which the credits would end is refused whole, call by call, and takes nothing (§2.4.2)', async () => {
  const key = gateway.key('trial', 51);
  const [one, two, three] = [call('1', 'getProgramAccounts'), call('"2"'), call('3')];
  const refusals = ['1', '"2"', '3'].map((id) => error(-402, 'Trial credits used up', id));
  expect(await ask([one, two, three], key)).toEqual({ status: 402, text: `[${refusals.join()}]`, sent: 0 });
  expect(await ask([one, two], key)).toEqual({ status: 200, text: answers('1', '"2"'), sent: 2 });
});

const tooLarge = (id: string) => error(-32600, 'Batch too large; max 20', id);
test.each([
  [
    '21 elements, one more than the plan allows',
    calls(21),
    400,
    `[${calls(21).map((_, i) => tooLarge(`${i}`))}]`,
  ],
  ['10,001 elements', calls(10_001), 400, tooLarge('null')],
  ['100,001 elements that are no calls', Array(100_001).fill('1'), 400, tooLarge('null')],
  ['more bytes than a body may have', calls(13_000), 413, error(-32600, 'Request body too large', 'null')],
])(
  'B4 a batch of %s is refused before any work begins (§6 RPC rate, burst, batch, scans, concurrent calls)',
  async (_name, elements, status, text) => {
    const key = gateway.key('trial', 1);
    expect(await ask(elements, key)).toEqual({ status, text, sent: 0 });
    expect((await ask([call('1')], key)).status).toBe(200);
  },
);

test('B7 duplicate, null, huge and escaped ids come back verbatim and in order; notifications are left out and cost no credits (§2.1.1, §2.1.4)', async () => {
  const ids = ['1', '1', 'null', '"1"', '18446744073709551615', '"\\u0041\\"\\n"', '"é"', '0', '""', 'null'];
  const key = gateway.key('trial', ids.length);
  const notification = '{"jsonrpc":"2.0","method":"getSlot"}';
  const elements = ids.flatMap((id) => [notification, call(id)]);
  expect(await ask(elements, key)).toEqual({ status: 200, text: answers(...ids), sent: ids.length });
  expect((await ask([call('1')], key)).status).toBe(402);
});

test('B7 an id that Agave could not answer is an error with id null, in its place (§2.1.1)', async () => {
  const ids = ['1.0', '1e2', '-1', '18446744073709551616', 'true', '{}', '[1]'];
  const wrong = error(-32600, 'Invalid request: id must be a string, an unsigned integer or null', 'null');
  expect(await ask([call('1'), ...ids.map((id) => call(id)), call('2')], gateway.key('scale'))).toEqual({
    status: 200,
    text: `[${resultText(7)},${ids.map(() => wrong).join()},${resultText(7, 2)}]`,
    sent: 2,
  });
});

test.each(['[]', ' [\n] '])('B9 the empty batch %j is one -32600 object (§2.1.4)', async (body) => {
  expect(await ask(body, gateway.key('scale'))).toEqual({
    status: 400,
    text: error(-32600, 'Invalid request: empty batch', 'null'),
    sent: 0,
  });
});

describe('C13 what a known key sends in a shape that is no request costs one token, however long it is', () => {
  const many = Array.from({ length: 65 }, (_, i) => `"${i}":0`).join();
  test.each([
    ['no JSON', '{'],
    ['no JSON at the end of half a megabyte', `[${call('1')},"${'\\n'.repeat(250_000)}"`],
    ['no version', '{}'],
    ['too many members', `{${many}}`],
    ['an empty batch', '[]'],
    ['a batch above the plan', `[${calls(21).join()}]`],
    ['a batch above every plan', `[${calls(1_001).join()}]`],
  ])('C13 %s (§2.4.1)', async (_name, body) => {
    const key = gateway.key('four');
    const statuses = async (count: number) => {
      const all: number[] = [];
      while (all.length < count) all.push((await ask(body, key)).status);
      return all;
    };
    expect(await statuses(6)).toEqual([400, 400, 400, 400, 429, 429]);
    virtual.advance(1_000);
    expect(await statuses(2)).toEqual([400, 429]);
    expect((await ask(call('1'), key)).status).toBe(429);
  });

  test('C13 and no credits: they are not asked for, nor taken', async () => {
    const key = gateway.key('trial', 1);
    for (const body of ['{', '[]', '7']) expect((await ask(body, key)).status).toBe(400);
    expect((await gateway.post(call('1'), key)).headers.get('x-credits-left')).toBe('0');
    for (const body of ['{', '[]', '7']) expect((await ask(body, key)).status).toBe(400);
  });

  test('C13 and what is refused before its body is read costs nothing', async () => {
    const key = gateway.key('four');
    const headers = { 'content-type': 'text/plain' };
    for (let i = 0; i < 5; i++) expect((await gateway.post(call('1'), key, { headers })).status).toBe(415);
    expect((await ask(calls(4), key)).status).toBe(200);
  });
});
