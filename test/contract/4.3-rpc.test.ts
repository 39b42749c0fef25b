import { describe, expect, test } from 'bun:test';
import { failure, result, startBackend, streamed } from '../fakes/backend.ts';
import { startGateway } from '../started/gateway.ts';
import { shared } from '../started/shared.ts';

const call = (method: string, id: string, params?: string) =>
  `{"jsonrpc":"2.0","id":${id},"method":"${method}"${params === undefined ? '' : `,"params":${params}`}}`;

const backend = shared(startBackend());
const gateway = shared(await startGateway({ backends: [{ name: 'a', url: backend.url }] }));
const key = gateway.key();

describe('bytes (DESIGN 3.4)', () => {
  test.each(['0', '"0"', '12345678901234567890', 'null', '"\\u0041\\n"', '"é"'])(
    'the id %s comes back verbatim',
    async (id) => {
      const answer = await gateway.post(call('getSlot', id), key);
      expect(await answer.text()).toBe(`{"jsonrpc":"2.0","result":"answer to getSlot","id":${id}}\n`);
    },
  );

  test("params reach the backend as the caller's own bytes", async () => {
    const params = '[ "x", {"a" : 18446744073709551615, "b":1.0, "c":"\\u00e9\\/"} ]';
    await gateway.post(call('getAccountInfo', '1', params), key);
    expect(backend.seen.at(-1)?.text).toBe(
      `{"jsonrpc":"2.0","id":1,"method":"getAccountInfo","params":${params}}`,
    );
  });

  test("the result is the backend's own bytes", async () => {
    const json = '{"lamports":18446744073709551615,"rentEpoch":18446744073709551615,"x":1e2,"y":[ 1 ]}';
    backend.script((seen) => result(seen, json));
    expect(await (await gateway.post(call('getAccountInfo', '1'), key)).text()).toContain(
      `"result":${json},`,
    );
    backend.script(() => undefined);
  });

  test('members that JSON-RPC does not know are accepted and not forwarded', async () => {
    expect(
      (await gateway.post('{"jsonrpc":"2.0","id":1,"method":"getSlot","trace":{"a":[1]}}', key)).status,
    ).toBe(200);
    expect(backend.seen.at(-1)?.text).toBe('{"jsonrpc":"2.0","id":1,"method":"getSlot"}');
  });

  test('an error of the method is HTTP 200 with the code and message of the backend', async () => {
    backend.script((seen) => failure(seen, -32602, 'Invalid param: WrongSize'));
    const answer = await gateway.post(call('getBalance', '7'), key);
    expect([answer.status, await answer.text()]).toEqual([
      200,
      '{"jsonrpc":"2.0","error":{"code":-32602,"message":"Invalid param: WrongSize"},"id":7}\n',
    ]);
    backend.script(() => undefined);
  });
});

describe('batches (spec 4.3)', () => {
  test('answers come in request order, duplicate and null ids included, notifications left out', async () => {
    const body = `[${call('getSlot', '1')},${call('getBlock', '1')},{"jsonrpc":"2.0","method":"getSlot"},${call('getVersion', 'null')}]`;
    const answer = await gateway.post(body, key);
    const rows = JSON.parse(await answer.text()).map(
      ({ id, result: text }: { id: unknown; result: string }) => [id, text],
    );
    expect(rows).toEqual([
      [1, 'answer to getSlot'],
      [1, 'answer to getBlock'],
      [null, 'answer to getVersion'],
    ]);
  });

  test('a failed call has its own error object and the others their answers', async () => {
    backend.script((seen) =>
      seen.method === 'getBlock' ? new Response('broken', { status: 500 }) : undefined,
    );
    const answer = await gateway.post(
      `[${call('getSlot', '1')},${call('getBlock', '"b"')},${call('nope', '3')},4]`,
      key,
    );
    expect(answer.status).toBe(200);
    expect(JSON.parse(await answer.text())).toEqual([
      { jsonrpc: '2.0', result: 'answer to getSlot', id: 1 },
      { jsonrpc: '2.0', error: { code: -503, message: 'No backend available' }, id: 'b' },
      { jsonrpc: '2.0', error: { code: -32601, message: 'Method not found' }, id: 3 },
      { jsonrpc: '2.0', error: { code: -32600, message: 'Invalid request: not an object' }, id: null },
    ]);
    backend.script(() => undefined);
  });

  test('a batch of one is an array of one, and a large answer in the middle passes', async () => {
    backend.script((seen) => (seen.method === 'getProgramAccounts' ? streamed(seen, 3) : undefined));
    const one = await gateway.post(`[${call('getSlot', '1')}]`, key);
    expect(await one.json()).toEqual([{ jsonrpc: '2.0', result: 'answer to getSlot', id: 1 }]);
    const three = await gateway.post(
      `[${call('getSlot', '1')},${call('getProgramAccounts', '2')},${call('getSlot', '3')}]`,
      key,
    );
    const rows = JSON.parse(await three.text());
    expect(rows.map(({ id, result: text }: { id: number; result: string }) => [id, text.length])).toEqual([
      [1, 17],
      [2, 3 << 20],
      [3, 17],
    ]);
    backend.script(() => undefined);
  });

  test('calls are sent one by one, in parallel, and a slow first one delays only what is behind it in order', async () => {
    const gate = Promise.withResolvers<void>();
    let under = 0;
    let most = 0;
    backend.script(async (seen) => {
      most = Math.max(most, ++under);
      if (seen.method === 'getBlock') await gate.promise;
      under--;
      return result(seen, '1');
    });
    const pending = gateway.post(
      `[${call('getBlock', '0')},${Array.from({ length: 19 }, (_, i) => call('getBlockHeight', String(i + 1))).join()}]`,
      key,
    );
    while (backend.seen.filter(({ text }) => text.includes('"id":19')).length === 0) await Bun.sleep(1); // awaits the last call's arrival
    gate.resolve();
    expect(JSON.parse(await (await pending).text()).map(({ id }: { id: number }) => id)).toEqual(
      Array.from({ length: 20 }, (_, i) => i),
    );
    expect(most).toBeGreaterThan(1);
    expect(most).toBeLessThanOrEqual(8);
    backend.script(() => undefined);
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

  test('requestAirdrop passes when a backend declares it', async () => {
    await using declared = await startGateway({
      backends: [{ name: 'a', url: backend.url, methods: ['requestAirdrop'] }],
    });
    expect(await (await declared.post(call('requestAirdrop', '1'), declared.key())).text()).toContain(
      'answer to requestAirdrop',
    );
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
