import { expect, test } from 'bun:test';
import { CHUNKED, chunk, plain, type RawScript, startRawBackend } from '../fakes/raw-backend.ts';
import { openCaller, postText, type RawCaller } from '../fakes/raw-caller.ts';
import { startGateway } from '../started/gateway.ts';
import { atRest } from './gateway-process.ts';
import { callText, endless, rawPair, resultText } from './pair.ts';

const SCAN = callText(1, 'getProgramAccounts');
const SLOT = callText(2);
const BEGIN = `${CHUNKED}${chunk('{"jsonrpc":"2.0","result":"')}`;

const { backend, gateway } = await rawPair({
  plans: { one: { rps: 1_000, burst: 1_000, scans: 1 }, trial: { rps: 1_000, burst: 1_000 } },
});

/** Begins an answer and goes on until the gateway stops reading. */
const goesOn = (onGone: () => void) => endless(BEGIN, chunk('a'.repeat(65_536)), onGone);

/** Never answers. */
const silent =
  (onGone: () => void): RawScript =>
  ({ gone }) =>
    gone.then(onGone);

const inFlight = () => gateway.metric('backend_calls_in_flight{backend="a"}');

/** Begins an answer that will be held until it is whole, and says no more. */
const begun =
  (head: string) =>
  (onGone: () => void): RawScript =>
  ({ gone, send }) => {
    void gone.then(onGone);
    return send(`${head}{"jsonrpc":"2.0","error":`);
  };
const SHORT = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 3000\r\n\r\n';
const UNTIL_CLOSE = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n';
/** A turn of the loop or two, so that the gateway has read what its backend said. */
const moment = () => Bun.sleep(20);

/** Where a caller may be when it leaves: what its backend does, its body, and how far it has got. */
const LEAVES: readonly (readonly [
  string,
  (onGone: () => void) => RawScript,
  string,
  (caller: RawCaller) => unknown,
])[] = [
  ['A3 a caller that leaves in the middle of an answer', goesOn, SCAN, (caller) => caller.until('aaaa')],
  [
    'A3 a caller that leaves while it is behind',
    goesOn,
    SCAN,
    async (caller) => {
      await caller.until('aaaa');
      caller.pause();
      await atRest(caller.received, 50);
    },
  ],
  ['A5 a caller that leaves before an answer has begun', silent, SCAN, () => undefined],
  ['A5 a caller that leaves while a short answer is held', begun(SHORT), SCAN, moment],
  ['A5 a caller that leaves while an error is held', begun(UNTIL_CLOSE), SCAN, moment],
  [
    'B6 a caller that leaves in the middle of a batch',
    goesOn,
    `[${SLOT},${SCAN},${SLOT}]`,
    (caller) => caller.until('aaaa'),
  ],
];

test.each(LEAVES)(
  '%s ends its backend requests within a second, and gives its permit back',
  async (_name, script, body, far) => {
    const key = gateway.key('one');
    const calls = backend.calls();
    let gone = 0;
    backend.script(script(() => void gone++));
    const caller = await openCaller(gateway.url);
    caller.send(postText(body, key));
    await backend.called(calls + 1);
    await far(caller);
    const asked = backend.calls() - calls;
    const leftMs = performance.now();
    caller.reset();
    while (gone < asked || (await inFlight()) > 0) await Bun.sleep(1); // the end of the last is the event awaited
    expect(performance.now() - leftMs).toBeLessThan(1_000);

    backend.script((exchange) => exchange.send(plain(resultText(7))));
    expect(await (await gateway.post(SCAN, key)).text()).toBe(resultText(7));
  },
);

test('A3 a caller that leaves before anything was sent for it pays nothing', async () => {
  const gate = Promise.withResolvers<void>();
  using busy = startRawBackend(async (exchange) => {
    await gate.promise;
    return exchange.send(plain(resultText(1, exchange.id)));
  });
  await using narrow = await startGateway({ backends: [{ name: 'a', url: busy.url, max_connections: 1 }] });
  const first = narrow.post(SLOT, narrow.key());
  await busy.called(1); // until the one place is taken
  const trial = narrow.key('trial', 10);
  const leave = new AbortController();
  const waiting = narrow.post(SLOT, trial, { signal: leave.signal }).catch((error: Error) => error.name);
  while (narrow.ledger.query('SELECT 1 FROM spent').get() === null) await Bun.sleep(1); // until it is paid
  leave.abort();
  expect(await waiting).toBe('AbortError');
  gate.resolve();
  expect((await first).status).toBe(200);
  const next = await narrow.post(SLOT, trial);
  expect(next.headers.get('x-credits-left')).toBe('9');
});
