import { describe, expect, test } from 'bun:test';
import { result, startBackend } from '../fakes/backend.ts';
import { plain, startRawBackend } from '../fakes/raw-backend.ts';
import { startGateway } from '../started/gateway.ts';
import { resultText } from './pair.ts';
import { createVirtualClock } from '../gateway/virtual-clock.ts';
import { freePort } from '../started/ports.ts';

const CALL = { jsonrpc: '2.0', id: 1, method: 'getBlockHeight' };
const ANSWER = '{"jsonrpc":"2.0","result":1,"id":1}';

describe('G8 a kept connection that the backend closes', () => {
  test.each(['end', 'reset'] as const)(
    'G8 with %s as the next read is sent fails no call: it is sent once more on a new connection',
    async (how) => {
      using backend = startRawBackend((exchange) => {
        if (exchange.nth === 1) void exchange.send(plain(ANSWER));
        else exchange[how]();
      });
      await using gateway = await startGateway({ backends: [{ name: 'a', url: backend.url }] });
      const key = gateway.key();
      for (let i = 0; i < 5; i++) expect((await gateway.post(CALL, key)).status).toBe(200);
      // Each call but the first met a closing connection, and was answered on a new one.
      expect([backend.connections(), backend.calls()]).toEqual([5, 9]);
      expect(await gateway.gateway.metrics.text()).not.toMatch(/backend_failures_total\{/);
    },
  );

  test('G8 after a byte of its answer is a failure, and no second answer is mixed into it', async () => {
    using backend = startRawBackend(async (exchange) => {
      if (exchange.nth === 1) return exchange.send(plain(ANSWER));
      await exchange.send('HTTP/1.1 200 OK\r\ncontent-ty');
      return exchange.reset();
    });
    await using gateway = await startGateway({ backends: [{ name: 'a', url: backend.url }] });
    const key = gateway.key();
    expect((await gateway.post(CALL, key)).status).toBe(200);
    expect((await gateway.post(CALL, key)).status).toBe(503);
    expect(backend.calls()).toBe(2);
  });

  test.each([
    ['getBalance', 'reset'],
    ['getProgramAccounts', 'reset'],
    ['getSignatureStatuses', 'reset'],
  ] as const)(
    'G8 goes once more to its backend, on a new connection, and then elsewhere, however many are kept: %s, %s',
    async (method, how) => {
      const WARM = 4;
      const waiting: (() => unknown)[] = [];
      const asked: string[] = [];
      const startNamed = (name: string) =>
        startRawBackend((exchange) => {
          asked.push(name);
          const answer = () => exchange.send(plain(resultText(1, exchange.id)));
          if (asked.length > WARM) return name === asked[0] ? exchange[how]() : answer();
          // So many are under way at once that its backend has as many connections.
          if (waiting.push(answer) === WARM) for (const each of waiting) each();
        });
      using a = startNamed('a');
      using b = startNamed('b');
      await using gateway = await startGateway({
        backends: [
          { name: 'a', url: a.url },
          { name: 'b', url: b.url },
        ],
      });
      const key = gateway.key();
      const warm = await Promise.all(Array.from({ length: WARM }, () => gateway.post(CALL, key)));
      expect(warm.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
      const [first = ''] = asked;
      const opened = [a, b].map(({ connections }) => connections());
      const call = { jsonrpc: '2.0', id: 1, method, params: [['x']] };
      const answer = await gateway.post(call, key);
      expect([answer.status, await answer.text()]).toEqual([200, ANSWER]);
      expect(asked.slice(WARM)).toEqual([first, first, first === 'a' ? 'b' : 'a']);
      const index = first === 'a' ? 0 : 1;
      expect([a, b][index]?.connections()).toBe((opened[index] ?? 0) + 1);
    },
  );

  test('G8 idle for 15 s is closed by the gateway first: Agave closes at 20', async () => {
    const clock = createVirtualClock();
    using backend = startRawBackend((exchange) => exchange.send(plain(ANSWER)));
    await using gateway = await startGateway(
      { backends: [{ name: 'a', url: backend.url }], gateway: { probe_seconds: 60 } },
      clock.clock,
    );
    gateway.maintain();
    await gateway.post(CALL, gateway.key());
    let idleMs = 0;
    while (backend.open() > 0) {
      clock.advance(250);
      idleMs += 250;
      await Bun.sleep(1); // lets the closing arrive; bounded by the test's own timeout
    }
    expect(idleMs).toBeGreaterThanOrEqual(15_000);
    expect(idleMs).toBeLessThan(20_000);
  });
});

test('G11 a redirect is not followed: calls go to the configured addresses alone', async () => {
  await using elsewhere = startBackend();
  for (const status of [301, 302, 303, 307, 308]) {
    await using backend = startBackend(
      () => new Response(null, { status, headers: { location: elsewhere.url } }),
    );
    await using gateway = await startGateway({ backends: [{ name: 'a', url: backend.url }] });
    const answer = await gateway.post(CALL, gateway.key());
    expect([answer.status, answer.headers.get('location')]).toEqual([503, null]);
  }
  expect(elsewhere.seen.length).toBe(0);
});

test('G12 a backend that goes away and comes back at its address is noticed, both times, without a restart', async () => {
  const clock = createVirtualClock();
  const port = freePort();
  const first = startBackend(undefined, port);
  await using gateway = await startGateway({ backends: [{ name: 'a', url: first.url }] }, clock.clock);
  const key = gateway.key();
  expect((await gateway.post(CALL, key)).status).toBe(200);
  await first[Symbol.asyncDispose]();
  expect((await gateway.post(CALL, key)).status).toBe(503);
  await using _again = startBackend((call) => result(call, '2'), port);
  expect(await (await gateway.post(CALL, key)).json()).toMatchObject({ result: 2 });
});
