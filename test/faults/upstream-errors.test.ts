import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { failure, result, type Script, startBackend } from '../fakes/backend.ts';
import { startGateway } from '../started/gateway.ts';
import { plain, startRawBackend } from '../fakes/raw-backend.ts';
import { createVirtualClock } from '../gateway/virtual-clock.ts';
import { errorText, lostText } from './pair.ts';

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
  test.each([-32005, -32012, -32016, -32019, -32603, -32000])(
    'G1 %p is mended by another backend',
    async (code) => {
      scripts = [says(code), good];
      expect((await ask()).text).toContain('"good"');
      expect(new Set(asked).size).toBe(2);
    },
  );

  test.each([-32001, -32010, -32011, -32018, -32020, -32021, -32601])(
    'G1 %p may be known by another, and keeps its code when it is not',
    async (code) => {
      scripts = [says(code), good];
      expect((await ask('getInflationReward')).text).toContain('"good"');
      asked = [];
      scripts = [says(code, '{"slot":18446744073709551615}'), says(-32005), says(code)];
      expect((await ask('getInflationReward')).text).toBe(
        `${saying(code, '{"slot":18446744073709551615}')}\n`,
      );
      expect(asked.length).toBe(3);
    },
  );

  test.each([-32004, -32007, -32603, -32012])('G1 %p asks one other, and no third', async (code) => {
    scripts = [says(code), says(code), good];
    expect((await ask('getInflationReward')).text).toContain(`says ${code}`);
    expect(asked.length).toBe(2);
  });

  test.each([-32002, -32003, -32006, -32013, -32015, -32017, -32602, -32700, -32600])(
    'G3 %p is the answer, with its data untouched, and no other backend gets the call (§2.2.1)',
    async (code) => {
      const data = '{"err":null,"logs":["a\\u0001"],"n":1.0}';
      scripts = [says(code, data), good];
      expect((await ask()).text).toBe(`${saying(code, data)}\n`);
      expect(asked.length).toBe(1);
    },
  );

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

  test('G1 -32007 of a node is not replaced by the -32009 of an archive that adds nothing', async () => {
    scripts = [says(-32007), says(-32009)];
    expect((await ask('getInflationReward')).text).toContain('says -32007');
  });

  test('G1 -32602 is mended elsewhere when it was BigTable that failed', async () => {
    scripts = [
      (call) => failure(call, -32602, 'BigTable query failed (maybe timeout due to too large range)'),
      good,
    ];
    expect((await ask('getInflationReward')).text).toContain('"good"');
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

  test.each([429, -429, -32029, -32090, -32429])(
    "G1 a backend's own throttling %p never reaches a caller as his",
    async (code) => {
      scripts = [says(code), says(code), says(code)];
      expect(await ask()).toEqual({ status: 503, text: lostText('"me"') });
    },
  );
});

describe('G2 an answer of a front is classed by its status', () => {
  test.each([429, 500, 502, 503, 504, 520, 401, 403, 404, 301])(
    'G2 HTML with %p sends the call elsewhere, and is no parse error',
    async (code) => {
      scripts = [status(code), good];
      expect((await ask()).text).toContain('"good"');
    },
  );

  test('G2 HTML with 200 sends the call elsewhere', async () => {
    scripts = [status(200), status(200, '<html>', 'application/json'), good];
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

  test.each([
    ['getBlock', [5]],
    ['getBalance', ['x']],
  ])('G2 101 of a backend is a failure of it, whatever follows: %s', async (method, params) => {
    const switched = 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n';
    let asked = 0;
    using odd = startRawBackend((exchange) => {
      asked++;
      return exchange.send(`${switched}${plain('{"jsonrpc":"2.0","result":7,"id":1}')}`);
    });
    await using well = startBackend();
    await using both = await startGateway({
      backends: [odd, well].map(({ url }, i) => ({ name: 'ab'.charAt(i), url })),
    });
    for (let n = 0; n < 100 && asked === 0; n++) {
      const answer = await both.post({ jsonrpc: '2.0', id: 1, method, params }, both.key());
      expect(await answer.json()).toEqual({ jsonrpc: '2.0', id: 1, result: `answer to ${method}` });
    }
    expect(asked).toBe(1);
    expect(await both.gateway.metrics.text()).toMatch(/backend_failures_total\{backend="a"[^}]*\} 1/);
  });

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

  test.each([-32002, -32003, -32603, -32016, -32000, -32004, -32014, -32601])(
    'G4 answered with %p is sent to no other backend (§2.3.3)',
    async (code) => {
      scripts = [says(code, '{"err":"AlreadyProcessed"}'), good];
      expect((await ask(SEND, ['tx'])).text).toContain(`says ${code}`);
      expect(asked.length).toBe(1);
    },
  );

  test.each([
    ...[500, 502, 504, 520, 408, 202].map((code): [string, Script] => [`${code}`, status(code)]),
    ['an empty answer', status(200, '', 'application/json')],
    ['half an answer', status(200, '{"jsonrpc":"2.0","resu', 'application/json')],
    ...[408, 500, 502, 504, 524].flatMap((code) =>
      [-32005, -32603, -32002, -32429].map((error): [string, Script] => [
        `${code} with ${error}`,
        says(error, undefined, code),
      ]),
    ),
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

  test('G6 a call asks each backend once at most, whatever the status', async () => {
    scripts = [status(500), status(502), status(404), good];
    expect((await ask()).status).toBe(503);
    expect(asked.toSorted()).toEqual(['a', 'b', 'c']);
  });
});
