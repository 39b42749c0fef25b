import { beforeEach, afterEach, expect, test } from 'bun:test';
import {
  CHUNKED,
  chunk,
  plain,
  type RawExchange,
  type RawScript,
  startRawBackend,
} from '../fakes/raw-backend.ts';
import { startGateway } from '../started/gateway.ts';
import { shared } from '../started/shared.ts';
import { callText, errorText, resultText } from './pair.ts';

const SEND = callText(1, 'sendTransaction', '["c2lnbmVk",{"encoding":"base64"}]');
const NAMES = ['a', 'b', 'c'] as const;
const PLAN = { rps: 1e6, burst: 1e6, credits: 1_000_000 };

const backends = NAMES.map(() => shared(startRawBackend(() => undefined)));
let gateway: Awaited<ReturnType<typeof startGateway>>;
beforeEach(() => start());
afterEach(() => gateway[Symbol.asyncDispose]());

async function start(count = 3, row: object = {}) {
  gateway = await startGateway({
    backends: NAMES.slice(0, count).map((name, i) => ({
      name,
      url: backends[i]?.url,
      lanes: ['state', 'send'],
      ...row,
    })),
    plans: { one: PLAN, two: { ...PLAN, send_fanout: 2 }, all: { ...PLAN, send_fanout: 16 } },
  });
}

/** Another gateway before the same backends: failures put backends behind others. */
async function restart(count?: number, row?: object) {
  await gateway[Symbol.asyncDispose]();
  await start(count, row);
}

/** The bodies that came to each backend. */
let bodies: string[][];
function script(...scripts: readonly RawScript[]): void {
  bodies = backends.map(() => []);
  backends.forEach((backend, i) =>
    backend.script((exchange) => {
      const body = exchange.text.slice(exchange.text.indexOf('\r\n\r\n') + 4);
      bodies[i]?.push(body.replace(exchange.id, '1')); // each send has an id of its own
      return (scripts[i] ?? scripts[0])?.(exchange);
    }),
  );
}

const accept = ({ send }: RawExchange) => send(plain(resultText('"signature"')));
const refuse =
  (code: number, message: string) =>
  ({ send }: RawExchange) =>
    send(plain(errorText(code, message, 1)));
const status =
  (code: number) =>
  ({ send }: RawExchange) =>
    send(`HTTP/1.1 ${code} No\r\ncontent-length: 2\r\n\r\nno`);
const breakOff = ({ reset }: RawExchange) => reset();
const hang = () => undefined;
const BLOCKHASH = refuse(-32002, 'Transaction simulation failed: Blockhash not found');
const REFUSED = refuse(-32002, 'Transaction simulation failed: Error processing Instruction 0');
const PROCESSED = refuse(
  -32002,
  'Transaction simulation failed: This transaction has already been processed',
);
const BEHIND = refuse(-32005, 'Node is behind by 200 slots');

async function ask(plan: string, body = SEND) {
  const answer = await gateway.post(body, gateway.key(plan, 1_000));
  return { status: answer.status, text: await answer.text(), headers: answer.headers };
}

const counts = () => bodies.map(({ length }) => length);
const arrived = async (calls: number) => {
  while (counts().reduce((a, b) => a + b) < calls) await Bun.sleep(1); // the others are on their way
};

test.each([
  ['one', 1],
  ['two', 2],
  ['all', 3],
  ['all', 2],
])(
  'G17 a plan for %s gives a transaction to %p backends, or as many as there are, to each once and in the same bytes (§2.3.3)',
  async (plan, count) => {
    if (plan === 'all') await restart(count);
    script(accept);
    const { status: code, text, headers } = await ask(plan);
    expect([code, JSON.parse(text).result]).toEqual([200, 'signature']);
    expect([headers.get('x-credits-cost'), headers.get('x-credits-left')]).toEqual(['2', '998']);
    await arrived(count);
    expect(counts().toSorted()).toEqual([0, 0, 0, ...Array.from({ length: count }, () => 1)].slice(-3));
    expect(new Set(bodies.flat()).size).toBe(1);
    expect(await gateway.metric('send_fanouts_total{outcome="made"}')).toBe(count - 1);
    expect(await gateway.metric('first_byte_seconds_count{class="write"}')).toBe(1);
  },
);

test.each([
  ['refuses', REFUSED],
  ['is behind', BEHIND],
  ['breaks off', breakOff],
  ['hangs', hang],
])('G17 the first acceptance answers while another backend %s', async (_how, other) => {
  for (const at of [0, 1, 2]) {
    script(...NAMES.map((_, i) => (i === at ? accept : other)));
    const { status: code, text } = await ask('all');
    expect([code, JSON.parse(text).result]).toEqual([200, 'signature']);
    await restart();
  }
});

test.each([
  [
    'a refusal of the transaction, before a blockhash that one node does not know',
    [BLOCKHASH, REFUSED, BEHIND],
    'Instruction',
  ],
  ['an unknown blockhash, before a node that is behind', [BEHIND, BLOCKHASH, BEHIND], 'Blockhash'],
  ['a node that is behind, before one that is busy', [status(503), BEHIND, status(429)], 'behind'],
])('G17 of refusals the answer is %s', async (_what, scripts, part) => {
  for (const turn of [0, 1, 2]) {
    script(...scripts.slice(turn), ...scripts.slice(0, turn));
    const { status: code, text } = await ask('all');
    expect([code, text]).toEqual([200, expect.stringContaining(part)]);
    await restart();
  }
});

test('G17 none accepted and one may have taken it: 504, whatever the others say, and its credits are back once', async () => {
  script(REFUSED, breakOff, BLOCKHASH);
  const key = gateway.key('all', 1_000);
  const answer = await gateway.post(SEND, key);
  expect([answer.status, answer.headers.get('retry-after')]).toEqual([504, null]);
  expect(JSON.parse(await answer.text()).error.code).toBe(-504);
  expect(counts()).toEqual([1, 1, 1]);
  script(accept);
  expect((await gateway.post(SEND, key)).headers.get('x-credits-left')).toBe('998');
});

test.each([
  ['hangs', hang],
  ['breaks off', breakOff],
  ['refuses', REFUSED],
])(
  'G17 that it was processed already is the answer at once while another backend %s',
  async (_how, other) => {
    for (const turn of [0, 1, 2]) {
      const scripts = [PROCESSED, other, PROCESSED];
      script(...scripts.slice(turn), ...scripts.slice(0, turn));
      const { status: code, text } = await ask('all');
      expect([code, text]).toEqual([200, expect.stringContaining('already been processed')]);
      await restart();
    }
  },
);

test('G17 a backend that finds a request too long, which is about the request, gets the next one too', async () => {
  script(status(413), accept, accept);
  expect((await ask('all')).status).toBe(200);
  await arrived(3);
  script(accept);
  expect((await ask('all')).status).toBe(200);
  await arrived(3);
  expect(counts()).toEqual([1, 1, 1]);
});

test.each([
  ['is cut', 70_000],
  ['is too long', 1_100_000],
])('G17 an answer that %s may be an acceptance: 504, whatever the others say', async (_what, length) => {
  const begin = async ({ send, end }: RawExchange) => {
    await send(CHUNKED + chunk(`{"jsonrpc":"2.0","result":"${'x'.repeat(length)}`));
    if (length < 1_000_000) end();
  };
  script(REFUSED, begin, BLOCKHASH);
  expect((await ask('all')).status).toBe(504);
});

test('G17 one that turned it away is replaced by a backend that has not had it, and none has it twice', async () => {
  script(status(503), accept, accept);
  const { status: code } = await ask('two');
  expect(code).toBe(200);
  while ((bodies[1]?.length ?? 0) + (bodies[2]?.length ?? 0) === 0) await Bun.sleep(1);
  for (const count of counts()) expect(count).toBeLessThanOrEqual(1);
});

test('G17 nothing else is given to several: bundles, airdrops and reads go to one', async () => {
  const methods = ['sendBundle', 'requestAirdrop'];
  await restart(3, { methods });
  for (const method of [...methods, 'getBalance', 'simulateTransaction']) {
    script(accept);
    expect((await ask('all', SEND.replace('sendTransaction', method))).status).toBe(200);
    expect(counts().reduce((a, b) => a + b)).toBe(1);
  }
});
