import { describe, expect, test } from 'bun:test';
import { result, startBackend } from '../fakes/backend.ts';
import { startGateway } from '../started/gateway.ts';
import { shared } from '../started/shared.ts';

const call = (method: string, id: string, params?: string) =>
  `{"jsonrpc":"2.0","id":${id},"method":"${method}"${params === undefined ? '' : `,"params":${params}`}}`;

const backend = shared(startBackend());
const gateway = shared(await startGateway({ backends: [{ name: 'a', url: backend.url }] }));
const key = gateway.key();

describe('bytes (DESIGN 3.4)', () => {
  test('members that JSON-RPC does not know are accepted and not forwarded', async () => {
    expect(
      (await gateway.post('{"jsonrpc":"2.0","id":1,"method":"getSlot","trace":{"a":[1]}}', key)).status,
    ).toBe(200);
    expect(backend.seen.at(-1)?.text).toBe('{"jsonrpc":"2.0","id":1,"method":"getSlot"}');
  });
});

describe('methods with a rule of their own (DESIGN 3.5)', () => {
  const STATUS = call('getSignatureStatuses', '1', '[["sig"],{"searchTransactionHistory":true}]');

  test('getSignatureStatuses does not search history: the flag never reaches a backend', async () => {
    backend.script((seen) => result(seen, '{"context":{"slot":1},"value":[{"slot":1}]}'));
    expect((await gateway.post(STATUS, key)).status).toBe(200);
    expect(backend.seen.at(-1)?.params).toEqual([['sig'], {}]);
  });

  test('an unknown signature then is -32011, so that nobody reads "old" as "never happened"', async () => {
    backend.script((seen) => result(seen, '{"context":{"slot":1},"value":[null]}'));
    expect(await (await gateway.post(STATUS, key)).text()).toBe(
      '{"jsonrpc":"2.0","error":{"code":-32011,"message":"Transaction history is not available from this node"},"id":1}',
    );
    const plain = await gateway.post(call('getSignatureStatuses', '1', '[["sig"]]'), key);
    expect(await plain.text()).toContain('"value":[null]');
    backend.script(() => undefined);
  });

  test.each(['accountSubscribe', 'slotsUpdatesUnsubscribe'])(
    '%s is -32601 and names the reason (spec 4.3.5)',
    async (method) => {
      const answer = await gateway.post(call(method, '1'), key);
      expect([answer.status, await answer.text()]).toEqual([
        200,
        '{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found: subscriptions need WebSocket, which this endpoint does not offer"},"id":1}',
      ]);
    },
  );

  test.each([
    ['requestAirdrop', ': no backend here serves requestAirdrop'],
    ['getAsset', ': no backend here serves getAsset'],
    ['getTransactionsForAddress', ': no backend here serves getTransactionsForAddress'],
    ['getConfirmedBlock', ''],
    ['eth_call', ''],
    ['__proto__', ''],
  ])('%s is -32601 when no backend serves it, at the default price', async (method, why) => {
    const answer = await gateway.post(call(method, '1'), key);
    const message = `Method not found${why}`;
    expect(JSON.parse(await answer.text()).error).toEqual({ code: -32601, message });
  });

  test('a notification is never executed: 200 with an empty body, no credits', async () => {
    const before = backend.seen.length;
    const trial = gateway.key('trial', 10);
    const answer = await gateway.post('{"jsonrpc":"2.0","method":"sendTransaction","params":["x"]}', trial);
    expect([answer.status, await answer.text(), answer.headers.get('x-credits-cost')]).toEqual([
      200,
      '',
      '0',
    ]);
    expect(backend.seen.length).toBe(before);
  });
});

test('every admitted answer says what it cost, and on a trial what is left (DESIGN 3.3)', async () => {
  const trial = gateway.key('trial', 100);
  const scan = await gateway.post(call('getProgramAccounts', '1'), trial);
  expect([scan.headers.get('x-credits-cost'), scan.headers.get('x-credits-left')]).toEqual(['50', '50']);
  const unknown = await gateway.post(call('nope', '1'), trial);
  expect([unknown.headers.get('x-credits-cost'), unknown.headers.get('x-credits-left')]).toEqual(['1', '49']);
  const paid = await gateway.post(call('getSlot', '1'), key);
  expect([paid.headers.get('x-credits-cost'), paid.headers.get('x-credits-left')]).toEqual(['1', null]);
});
