import { expect, test } from 'bun:test';
import { startBackend } from '../fakes/backend.ts';
import { startGateway } from '../started/gateway.ts';
import { shared } from '../started/shared.ts';

const call = (method: string) => `{"jsonrpc":"2.0","id":"a","method":"${method}"}`;

const backend = shared(startBackend());
const gateway = shared(await startGateway({ backends: [{ name: 'a', url: backend.url }] }));
const key = gateway.key();

test.each([
  ['without an RPC plan', null],
  ['whose plan the config no longer has', 'gone'],
])('a key of an account %s is an inactive one (§1.4, §2.5 401)', async (_name, plan) => {
  const answer = await gateway.post(call('getSlot'), gateway.key(plan));
  expect([answer.status, await answer.text()]).toEqual([
    401,
    '{"jsonrpc":"2.0","error":{"code":-401,"message":"Invalid or inactive API key"},"id":"a"}',
  ]);
});

test('members that JSON-RPC does not know are accepted and not forwarded (§2.1.2)', async () => {
  const answer = await gateway.post('{"jsonrpc":"2.0","id":1,"method":"getSlot","trace":{"a":[1]}}', key);
  const seen = backend.seen.at(-1);
  expect([answer.status, seen?.text.replace(seen.id, '1')]).toEqual([
    200,
    '{"jsonrpc":"2.0","id":1,"method":"getSlot"}',
  ]);
});

test('a notification is never executed: 200 with an empty body, no credits (§2.1.4)', async () => {
  const before = backend.seen.length;
  const trial = gateway.key('trial', 10);
  const answer = await gateway.post('{"jsonrpc":"2.0","method":"sendTransaction","params":["x"]}', trial);
  const cost = answer.headers.get('x-credits-cost');
  expect([answer.status, await answer.text(), cost, backend.seen.length]).toEqual([200, '', '0', before]);
});

test('every admitted answer says what it cost, an unknown method the default, and on a trial what is left (§2.2.5)', async () => {
  const credits = async (method: string, of: string) => {
    const { headers } = await gateway.post(call(method), of);
    return [headers.get('x-credits-cost'), headers.get('x-credits-left')];
  };
  const trial = gateway.key('trial', 100);
  expect(await credits('getProgramAccounts', trial)).toEqual(['50', '50']);
  expect(await credits('__proto__', trial)).toEqual(['1', '49']);
  expect(await credits('getSlot', key)).toEqual(['1', null]);
});
