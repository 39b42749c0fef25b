import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { result, type Script, startBackend } from '../fakes/backend.ts';
import { startGateway } from '../started/gateway.ts';
import {
  CHUNKED,
  chunk,
  plain,
  type RawExchange,
  type RawScript,
  startRawBackend,
} from '../fakes/raw-backend.ts';
import { createVirtualClock } from '../gateway/virtual-clock.ts';
import { errorText, lostText, resultText } from './pair.ts';

/** Three backends that use the scripts in the order of the calls: the first call gets the first script, and so on. */
let backends: ReturnType<typeof startBackend>[];
let gateway: Awaited<ReturnType<typeof startGateway>>;
let clock: ReturnType<typeof createVirtualClock>;
let key: string;
let asked: string[];
let scripts: Script[];
beforeEach(async () => {
  [asked, scripts, backends] = [[], [], []];
  clock = createVirtualClock();
  const methods = ['requestAirdrop', 'sendSmartTransaction'];
  const rows = ['a', 'b', 'c'].map((name) => {
    const backend = startBackend((call) => {
      asked.push(name);
      return scripts.shift()?.(call);
    });
    backends.push(backend);
    return { name, url: backend.url, methods };
  });
  gateway = await startGateway({ backends: rows }, clock.clock);
  key = gateway.key();
});
afterEach(async () => {
  await gateway[Symbol.asyncDispose]();
  for (const backend of backends) await backend[Symbol.asyncDispose]();
});

const json = (text: string, code = 200) =>
  new Response(text, { status: code, headers: { 'content-type': 'application/json' } });
const says =
  (error: number, data?: string, code?: number): Script =>
  ({ id }) =>
    json(`${saying(error, data).replace('"me"', id)}\n`, code);
const saying = (code: number, data?: string) =>
  `{"jsonrpc":"2.0","error":{"code":${code},"message":"says ${code}"${data === undefined ? '' : `,"data":${data}`}},"id":"me"}`;
const good: Script = (call) => result(call, '"good"');
const status =
  (code: number, text = '<html>no</html>', type = 'text/html'): Script =>
  () =>
    new Response(text, { status: code, headers: { 'content-type': type } });

async function ask(method = 'getBlock', params: unknown[] = [5]) {
  const response = await gateway.post({ jsonrpc: '2.0', id: 'me', method, params }, key);
  return { status: response.status, text: await response.text() };
}

describe('G1 an error of the method, by its code', () => {
  test('G1 G3 one that others may mend is the answer when none does, its own is at once, with its data untouched (§2.2.1)', async () => {
    const data = '{"err":null,"logs":["a\\u0001"],"n":1.0,"slot":18446744073709551615}';
    for (const [code, backendsAsked] of [
      [-32601, 3],
      [-32602, 1],
    ] as const) {
      asked = [];
      scripts = [says(code, data), says(-32005), says(code)];
      expect((await ask()).text).toBe(`${saying(code, data)}\n`);
      expect(asked.length).toBe(backendsAsked);
    }
  });

  test('G1 an error that comes compressed is mended elsewhere as well', async () => {
    const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
    const packed: Script = ({ id }) =>
      new Response(Bun.gzipSync(saying(-32005).replace('"me"', id)), { headers });
    scripts = [packed, good];
    expect((await ask()).text).toContain('"good"');
    expect(asked.length).toBe(2);
  });

  test('G1 -32016 of a node goes to another one that is known to have the slot, also one that was thought equal', async () => {
    const get = { jsonrpc: '2.0', id: 1, method: 'getBalance', params: ['x'] };
    for (let i = 0; i < 30 && new Set(asked).size < backends.length; i++) {
      scripts = [(call) => result(call, '{"context":{"slot":500},"value":1}')];
      await (await gateway.post(get, gateway.key())).text();
    }
    expect(new Set(asked).size).toBe(backends.length);
    asked = [];
    scripts = [says(-32016), good];
    const answer = await ask('getBalance', ['x', { minContextSlot: 450, commitment: 'finalized' }]);
    expect(answer.text).toContain('"good"');
    expect(asked.length).toBe(2);
    asked = [];
    scripts = [says(-32016), good];
    expect((await ask('getBalance', ['x', { minContextSlot: 900 }])).text).toContain('says -32016');
    expect(asked.length).toBe(1);
  });

  test('G1 -32014 is retried twice, 200 to 400 ms apart, and then it is the answer', async () => {
    scripts = [says(-32014), says(-32014), says(-32014), good];
    const answer = ask('getInflationReward');
    for (const expected of [1, 2]) {
      while (asked.length < expected || clock.sleeping() === 0) await Bun.sleep(1); // until it waits
      clock.advance(199);
      await new Promise(setImmediate);
      expect(asked.length).toBe(expected);
      clock.advance(201);
    }
    expect((await answer).text).toContain('says -32014');
    expect(asked.length).toBe(3);
  });

  test("G1 a backend's own throttling never reaches a caller as his", async () => {
    scripts = [says(429), says(-32029), says(-32429)];
    expect(await ask()).toEqual({ status: 503, text: lostText('"me"') });
  });
});

describe('A9 while no byte has left', () => {
  test('A9 an error that another backend may mend is not passed on, however it comes', async () => {
    const text = errorText(-32005, 'Node is behind', 1);
    let [script, calls]: [RawScript, number] = [() => undefined, 0];
    using one = startRawBackend((each) => (calls++ === 0 ? script(each) : each.send(plain(resultText(7)))));
    using two = startRawBackend((each) => (calls++ === 0 ? script(each) : each.send(plain(resultText(7)))));
    await using both = await startGateway({
      backends: [one, two].map(({ url }, i) => ({ name: 'ab'.charAt(i), url })),
    });
    const inPieces =
      (...pieces: readonly string[]): RawScript =>
      async (each) => {
        await each.send(CHUNKED);
        for (const piece of pieces) {
          await each.send(chunk(piece));
          await Bun.sleep(5); // so that it is read by itself
        }
        await each.send('0\r\n\r\n');
      };
    const ways = [1, 27, 40].map((at) => inPieces(text.slice(0, at), text.slice(at)));
    for (const does of [(each: RawExchange) => each.send(plain(text)), inPieces(text), ...ways])
      for (const method of ['getSlot', 'sendTransaction']) {
        [script, calls] = [does, 0];
        const answer = await both.post({ jsonrpc: '2.0', id: 1, method }, both.key());
        expect([await answer.text(), calls]).toEqual([resultText(7), 2]);
      }
  });
});

describe('G2 an answer of a front is classed by its status', () => {
  test('G2 HTML sends the call elsewhere with 200 as with 500, and is no parse error', async () => {
    scripts = [status(500), status(200, '<html>', 'application/json'), good];
    expect((await ask()).text).toContain('"good"');
  });

  test.each([400, 404, 500, 502])(
    'G2 an error of the method under %p is the answer that it is',
    async (code) => {
      scripts = [says(-32602, undefined, code), good];
      expect(await ask()).toEqual({ status: 200, text: `${saying(-32602)}\n` });
      expect(asked.length).toBe(1);
    },
  );

  test.each([401, 403, 429, 503])('G2 %p outranks whatever its body says', async (code) => {
    scripts = [says(-32602, undefined, code), good];
    expect((await ask()).text).toContain('"good"');
  });

  test.each([
    [400, 503, 1],
    [431, 503, 1],
    [413, 413, 3],
  ])(
    'G2 %p of a front is %p to the caller, from %p backends, and takes his rate but no credits',
    async (code, expected, backendsAsked) => {
      const trial = gateway.key('trial', 100);
      scripts = Array.from({ length: 100 }, () => status(code));
      const { burst } = gateway.config.plans.get('trial') ?? { burst: 0 };
      for (let n = 0; n < burst; n++) {
        asked = [];
        const response = await gateway.post({ jsonrpc: '2.0', id: 1, method: 'getSlot' }, trial);
        expect([response.status, asked.length]).toEqual([expected, backendsAsked]);
      }
      asked = [];
      const over = await gateway.post({ jsonrpc: '2.0', id: 1, method: 'getSlot' }, trial);
      expect([over.status, asked.length]).toEqual([429, 0]);
      scripts = [];
      clock.advance(1_000);
      const next = await gateway.post({ jsonrpc: '2.0', id: 1, method: 'getSlot' }, trial);
      expect(next.headers.get('x-credits-left')).toBe('99');
    },
  );

  test('G2 a call without any reply takes no rate, alone or in a batch', async () => {
    for (const backend of backends) await backend[Symbol.asyncDispose]();
    const trial = gateway.key('trial', 100);
    const { burst } = gateway.config.plans.get('trial') ?? { burst: 0 };
    for (let n = 0; n < 2 * burst; n++) {
      const response = await gateway.post({ jsonrpc: '2.0', id: 1, method: 'getSlot' }, trial);
      expect([response.status, response.headers.get('retry-after')]).toEqual([503, '1']);
    }
    const batch = Array.from({ length: burst }, (_, id) => ({ jsonrpc: '2.0', id, method: 'getSlot' }));
    for (let n = 0; n < 2; n++) {
      const response = await gateway.post(batch, trial);
      expect(response.status).toBe(200);
      expect(await response.text()).toBe(`[${batch.map(({ id }) => lostText(id)).join()}]`);
    }
    // What was replied to keeps its token.
    await using answering = startBackend(status(400));
    await using other = await startGateway({ backends: [{ name: 'a', url: answering.url }] }, clock.clock);
    const replied = other.key('trial', 100);
    expect((await other.post(batch, replied)).status).toBe(200);
    expect((await other.post(batch, replied)).status).toBe(429);
  });

  test('G2 a node of the profile agave is not asked for what it does not take, 51,200 bytes', async () => {
    const params = ['x'.repeat(51_200)];
    expect((await ask('getMultipleAccounts', params)).status).toBe(413);
    expect(asked).toEqual([]);
  });

  test('G2 in a batch, 413 is the error of its own call', async () => {
    scripts = [good];
    const large = { jsonrpc: '2.0', id: 2, method: 'getSlot', params: ['x'.repeat(2_000)] };
    await using small = startBackend();
    await using narrow = await startGateway({
      backends: [{ name: 'n', url: small.url, max_body_bytes: 1_024 }],
    });
    const answer = await narrow.post([{ jsonrpc: '2.0', id: 1, method: 'getSlot' }, large], narrow.key());
    expect(await answer.json()).toEqual([
      { jsonrpc: '2.0', id: 1, result: 'answer to getSlot' },
      { jsonrpc: '2.0', id: 2, error: { code: -32600, message: 'Request body too large' } },
    ]);
    expect(small.seen.length).toBe(1);
  });
});

const MAYBE_SENT = errorText(
  -504,
  'The transaction may have been sent; ask for its status before sending it again',
  '"me"',
);

describe('G4 G5 a send', () => {
  const SEND = 'sendTransaction';

  test('G4 answered with an error is sent to no other backend (§2.3.3)', async () => {
    scripts = [says(-32603, '{"err":"AlreadyProcessed"}'), good];
    expect((await ask(SEND, ['tx'])).text).toContain('says -32603');
    expect(asked.length).toBe(1);
  });

  test.each([
    ['502', status(502)],
    ['an empty answer', status(200, '', 'application/json')],
    ['half an answer', status(200, '{"jsonrpc":"2.0","resu', 'application/json')],
    ...[408, 500, 502, 504].map((code): [string, Script] => [
      `${code} with an error`,
      says(-32603, undefined, code),
    ]),
    ['500 with an error without an id', () => json(errorText(-32603, 'timeout'), 500)],
    ...[400, 500].map((code): [string, Script] => [
      `${code} with a signature`,
      (call) => json(`{"jsonrpc":"2.0","result":"sig","id":${call.id}}`, code),
    ]),
  ])(
    'G4 whose outcome is unknown after %s is not sent again, and the answer says so (§2.5 504)',
    async (_, script) => {
      for (const method of [SEND, 'requestAirdrop', 'sendSmartTransaction']) {
        asked = [];
        scripts = [script, good];
        expect(await ask(method, ['tx'])).toEqual({ status: 504, text: MAYBE_SENT });
        expect(asked.length).toBe(1);
      }
    },
  );

  test.each([400, 404, 422])('G4 that %p says was not taken has the error it says', async (code) => {
    scripts = [says(-32602, undefined, code), good];
    expect(await ask(SEND, ['tx'])).toEqual({ status: 200, text: `${saying(-32602)}\n` });
    expect(asked.length).toBe(1);
  });

  test.each([429, 503])(
    'G4 that %p turns away is sent to another, whatever its body says (§2.3.3)',
    async (code) => {
      scripts = [says(-32602, undefined, code), good];
      expect((await ask(SEND, ['tx'])).text).toContain('"good"');
      expect(asked.length).toBe(2);
    },
  );

  test('G4 whose outcome is unknown keeps its token of the rate, alone and in a batch, with a reply and without', async () => {
    const { burst } = gateway.config.plans.get('trial') ?? { burst: 0 };
    const send = { jsonrpc: '2.0', id: 'me', method: SEND, params: ['tx'] };
    const lost: readonly Script[] = [status(502), says(-32603, undefined, 500)];
    for (const script of lost) {
      const trial = gateway.key('trial', 100);
      scripts = Array.from({ length: burst }, () => script);
      for (let n = 0; n < burst; n++) expect((await gateway.post(send, trial)).status).toBe(504);
      expect((await gateway.post(send, trial)).status).toBe(429);
      const other = gateway.key('trial', 100);
      const batch = Array.from({ length: burst }, () => send);
      scripts = batch.map(() => script);
      expect(await (await gateway.post(batch, other)).text()).toBe(`[${batch.map(() => MAYBE_SENT)}]`);
      expect((await gateway.post(batch, other)).status).toBe(429);
    }
    using silent = startRawBackend((exchange) => exchange.end());
    await using alone = await startGateway({ backends: [{ name: 'a', url: silent.url }] }, clock.clock);
    const trial = alone.key('trial', 100);
    for (let n = 0; n < burst; n++) expect((await alone.post(send, trial)).status).toBe(504);
    expect((await alone.post(send, trial)).status).toBe(429);
    expect(silent.calls()).toBe(burst);
  });

  test('G4 whose outcome is unknown costs no credits, and has no Retry-After', async () => {
    const trial = gateway.key('trial', 100);
    const send = { jsonrpc: '2.0', id: 'me', method: SEND, params: ['tx'] };
    scripts = [says(-32005), status(502), good];
    const response = await gateway.post(send, trial);
    expect([response.status, response.headers.get('retry-after')]).toEqual([504, null]);
    scripts = [status(504), good];
    expect(await (await gateway.post([send], trial)).text()).toBe(`[${MAYBE_SENT}]`);
    const next = await gateway.post({ jsonrpc: '2.0', id: 1, method: 'getSlot' }, trial);
    expect(next.headers.get('x-credits-left')).toBe('99');
  });

  test('G5 is never hedged, however long it takes', async () => {
    const gate = Promise.withResolvers<void>();
    scripts = [
      async (call) => {
        await gate.promise;
        return result(call, '"signature"');
      },
      good,
    ];
    const answer = ask(SEND, ['tx']);
    while (asked.length === 0) await Bun.sleep(1); // until it has arrived
    for (let second = 0; second < 25; second++) {
      clock.advance(1_000);
      await new Promise(setImmediate);
    }
    expect(asked.length).toBe(1);
    gate.resolve();
    expect((await answer).text).toContain('"signature"');
  });
});

describe('G6 the retries of the whole pool', () => {
  test('G6 do not multiply an outage of all: one in ten beyond what a quiet pool has saved', async () => {
    scripts = Array.from({ length: 10_000 }, () => status(500));
    const CALLS = 600;
    for (let i = 0; i < CALLS; i++) expect((await ask()).status).toBe(503);
    expect(asked.length).toBeLessThanOrEqual(CALLS + 200 + CALLS / 10 + 1);
    expect(asked.length).toBeGreaterThan(CALLS);
    const metrics = await gateway.gateway.metrics.text();
    expect(metrics).toMatch(/sluice_gateway_retries_total\{outcome="refused"\} [1-9]/);
  });
});
