import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { startChain } from './harness.ts';

const PARSE_ERROR = '{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null}\n';
const invalid = (id: string) =>
  `{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request"},"id":${id}}\n`;
const health = (members: string) => `{${members},"method":"getHealth"}`;
const ok = (id: string) => `{"jsonrpc":"2.0","result":"ok","id":${id}}\n`;

let net: Awaited<ReturnType<typeof startChain>>;
beforeAll(async () => {
  net = await startChain();
});
afterAll(() => net[Symbol.dispose]());

describe('a single call is answered as jsonrpc-core 18 answers it', () => {
  test.each([
    ['a string id', health('"jsonrpc":"2.0","id":"a"'), ok('"a"')],
    ['id 0', health('"jsonrpc":"2.0","id":0'), ok('0')],
    ['a u64 id beyond 2^53', health('"jsonrpc":"2.0","id":18446744073709551615'), ok('18446744073709551615')],
    ['an id with escapes', health('"jsonrpc":"2.0","id":"\\u00e9\\n"'), ok('"é\\n"')],
    ['id null', health('"jsonrpc":"2.0","id":null'), ok('null')],
    ['params null', '{"jsonrpc":"2.0","id":1,"method":"getHealth","params":null}', ok('1')],
    ['a notification', '{"jsonrpc":"2.0","method":"getHealth"}', ''],
    ['a body that is not JSON', '{"jsonrpc":', PARSE_ERROR],
    ['a negative id', health('"jsonrpc":"2.0","id":-1'), PARSE_ERROR],
    ['an id above u64', health('"jsonrpc":"2.0","id":18446744073709551616'), PARSE_ERROR],
    ['an id of another type', health('"jsonrpc":"2.0","id":1.5'), PARSE_ERROR],
    ['version 1.0', '{"jsonrpc":"1.0","id":1,"method":"getHealth"}', invalid('1')],
    ['an extra member', '{"jsonrpc":"2.0","id":1,"method":"getHealth","extra":0}', invalid('1')],
    ['scalar params', '{"jsonrpc":"2.0","id":1,"method":"getHealth","params":1}', invalid('1')],
    ['no method', '{"jsonrpc":"2.0","id":1}', invalid('1')],
    ['an empty object', '{}', invalid('null')],
    [
      'no version',
      '{"id":1,"method":"getHealth"}',
      '{"error":{"code":-32600,"message":"Unsupported JSON-RPC protocol version"},"id":1}\n',
    ],
    [
      'an unknown method',
      '{"jsonrpc":"2.0","id":1,"method":"getConfirmedBlock","params":[1]}',
      '{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":1}\n',
    ],
    [
      'params by name',
      '{"jsonrpc":"2.0","id":1,"method":"getSlot","params":{"commitment":"processed"}}',
      '{"jsonrpc":"2.0","error":{"code":-32602,"message":"`params` should be an array"},"id":1}\n',
    ],
  ])('%s', async (_, body, answer) => {
    const response = await net.request(body);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(await response.text()).toBe(answer);
  });
});

describe('a batch', () => {
  const [one, two] = [health('"jsonrpc":"2.0","id":1'), health('"jsonrpc":"2.0","id":2')];
  const [notified, none] = [health('"jsonrpc":"2.0"'), health('"jsonrpc":"2.0","id":null')];
  const [answer, unknown] = [ok('1').trim(), one.replace('getHealth', 'x')];
  const notFound = '{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":1}';
  test.each([
    ['of none is answered with nothing', '[]', ''],
    ['of notifications is answered with nothing', `[${notified}]`, ''],
    ['with something that is no call is unreadable whole', `[${one},1]`, PARSE_ERROR],
    ['with a bad id is unreadable whole', `[${one},${health('"jsonrpc":"2.0","id":-1')}]`, PARSE_ERROR],
    [
      'keeps the order, equal ids and null ids, and leaves notifications out',
      `[${two},${one},${notified},${unknown},${none}]`,
      `[${ok('2').trim()},${answer},${notFound},${ok('null').trim()}]\n`,
    ],
    ['of one is answered with an array', `[${one}]`, `[${answer}]\n`],
  ])('%s', async (_, body, expected) => {
    expect(await net.post(body)).toBe(expected);
  });
});

describe('HTTP has the statuses and texts of jsonrpc-http-server 18', () => {
  const body = health('"jsonrpc":"2.0","id":1');
  test.each([
    ['text/plain', 415],
    ['application/json', 200],
    ['APPLICATION/JSON; charset=UTF-8', 200],
    ['application/json;charset=utf-8', 200],
    ['application/json; charset=latin1', 415],
    ['application/json-rpc', 415],
  ])('content type %s gives %i', async (type, status) => {
    const response = await net.request(body, { headers: { 'content-type': type } });
    expect(response.status).toBe(status);
    if (status === 415) {
      expect(await response.text()).toBe(
        'Supplied content type is not allowed. Content-Type: application/json is required\n',
      );
    }
  });

  test('another HTTP method is 405, and a body that is not UTF-8 is 400', async () => {
    expect((await net.request(Uint8Array.of(0x22, 0xff, 0x22))).status).toBe(400);
    const response = await net.request('', { method: 'PUT' });
    expect(response.status).toBe(405);
    expect(await response.text()).toBe('Used HTTP Method is not allowed. POST or OPTIONS is required\n');
  });

  test('a body at the limit is read and one above it is 413', async () => {
    const padded = body.padEnd(50 * 1024);
    expect((await net.request(padded)).status).toBe(200);
    const response = await net.request(`${padded} `);
    expect(response.status).toBe(413);
    expect(await response.text()).toBe('request body size exceeds allowed maximum');
  });

  test('OPTIONS lists what is allowed, for browsers too', async () => {
    const headers = {
      origin: 'https://app.example',
      'access-control-request-headers': 'solana-client,x-token',
    };
    const response = await net.request('', { method: 'OPTIONS', headers });
    expect(response.status).toBe(200);
    expect(await response.text()).toBe('');
    expect(Object.fromEntries(response.headers)).toMatchObject({
      allow: 'OPTIONS, POST',
      accept: 'application/json',
      vary: 'origin',
      'access-control-allow-origin': '*',
      'access-control-allow-methods': 'OPTIONS, POST',
      'access-control-max-age': '86400',
      'access-control-allow-headers': 'solana-client,x-token',
    });
  });

  test('a deeply nested body is a parse error, not a fault', async () => {
    expect(await net.post('['.repeat(50_000))).toBe(PARSE_ERROR);
    expect(await net.post(`${'['.repeat(25_000)}${']'.repeat(25_000)}`)).toBe(PARSE_ERROR);
    expect(net.faults).toEqual([]);
  });
});
