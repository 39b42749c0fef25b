import { describe, expect, test } from 'bun:test';
import { CHUNKED, chunk, plain, type RawExchange } from '../fakes/raw-backend.ts';
import { openCaller, postText } from '../fakes/raw-caller.ts';
import { atRest } from './gateway-process.ts';
import { callText, endless, rawPair } from './pair.ts';

const SCAN = callText(1, 'getProgramAccounts', '["p"]');
const LINES = 'accept: application/x-ndjson\r\n';
const row = (i: number) =>
  `{"account":{"data":["${'A'.repeat(400)}","base64"],"lamports":18446744073709551615},"pubkey":"k${i}"}`;
const rows = (count: number) => Array.from({ length: count }, (_, i) => row(i)).join();
const BEGIN = '{"jsonrpc":"2.0","result":[';

const { backend, gateway } = await rawPair({
  plans: { trial: { rps: 1_000, burst: 1_000 }, one: { rps: 1_000, burst: 1_000, scans: 1 } },
});

const ask = (key: string) => gateway.post(SCAN, key, { headers: { accept: 'application/x-ndjson' } });

/** Sends a hundred accounts after the other until the gateway stops reading; `onSent` is called for each hundred. */
const goesOn = (onSent?: () => void, onGone?: () => void) =>
  endless(`${CHUNKED}${chunk(`${BEGIN}${row(0)}`)}`, chunk(`,${rows(100)}`), onGone, onSent);

test('A1 a reader of lines that stops reading stops the backend', async () => {
  let sent = 0;
  backend.script(goesOn(() => (sent += 100)));
  using caller = await openCaller(gateway.url);
  caller.send(postText(SCAN, gateway.key(), LINES));
  await caller.until('"pubkey":"k0"');
  caller.pause();
  const stopped = await atRest(() => sent);
  // Half a kilobyte each: what the buffers of four sockets hold, and no more.
  expect(stopped).toBeLessThan(100_000);
  caller.resume();
  while (sent < 2 * stopped) await Bun.sleep(1); // bounded by the test's own timeout
});

/** Begins an answer, and says no more before its first account. */
const begins = (onGone: () => void) => async (exchange: RawExchange) => {
  void exchange.gone.then(onGone);
  await exchange.send(`${CHUNKED}${chunk('{"jsonrpc":"2.0",')}`);
};

test.each([
  ['A3 among its accounts', (onGone: () => void) => goesOn(undefined, onGone), 1],
  ['A5 before the first account', begins, 0],
] as const)(
  '%s a caller of lines that leaves ends the scan and gives its permit back',
  async (_where, script, seen) => {
    const key = gateway.key('one');
    const gone = Promise.withResolvers<void>();
    const calls = backend.calls();
    backend.script(script(gone.resolve));
    const caller = await openCaller(gateway.url);
    caller.send(postText(SCAN, key, LINES));
    if (seen > 0) await caller.until('"pubkey":"k1"');
    await backend.called(calls + 1);
    await Bun.sleep(10); // so that the beginning has been read
    caller.reset();
    await gone.promise;
    backend.script((exchange) => exchange.send(plain(`${BEGIN}${rows(2)}],"id":1}`)));
    expect(await (await ask(key)).text()).toBe(`${row(0)}\n${row(1)}\n{"accounts":2,"slot":null}\n`);
  },
);

describe('A6 a scan in lines that is cut has no last line, looks cut, and is not paid for', () => {
  const head = `${CHUNKED}${chunk(`${BEGIN}${rows(300)}`)}`;
  const LAST = '"pubkey":"k299"';
  test.each<[string, (exchange: RawExchange) => unknown]>([
    ['a reset', ({ reset }) => reset()],
    ['no last chunk', async ({ send, end }) => (await send(chunk('],"id":1}')), end())],
    ['a clean end between two accounts', ({ send }) => send('0\r\n\r\n')],
    ['a clean end within an account', ({ send }) => send(`${chunk(',{"account":')}0\r\n\r\n`)],
    ['an error page', ({ send }) => send(`${chunk('<html>')}0\r\n\r\n`)],
  ])('A6 %s (§2.3.5)', async (_name, end) => {
    const key = gateway.key('trial', 100);
    using caller = await openCaller(gateway.url);
    backend.script(async (exchange) => {
      await exchange.send(head);
      await caller.until(LAST); // the system throws away what is not read when the connection is reset
      await end(exchange);
    });
    caller.send(postText(SCAN, key, LINES));
    await caller.ended;
    expect(caller.text()).toContain(LAST);
    expect(caller.text()).not.toContain('"accounts":');
    expect(caller.text()).not.toContain('\r\n0\r\n\r\n');
    backend.script((exchange) => exchange.send(plain(`${BEGIN}],"id":1}`)));
    expect((await ask(key)).headers.get('x-credits-left')).toBe('50');
  });
});
