import { describe, expect, test } from 'bun:test';
import { startLiveNode } from '../../fakes/live-node.ts';
import { backendOf, forwardOf } from './of.ts';
import { createVirtualClock } from '../virtual-clock.ts';

/** A backend that begins every answer and never goes on; `open` counts its connections. */
function startStalling(dripMs?: number) {
  let open = 0;
  const timers = new Set<Timer>();
  const listener = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open: () => void open++,
      close: () => void open--,
      data(socket) {
        socket.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 3000\r\n\r\n{');
        if (dripMs !== undefined) timers.add(setInterval(() => socket.write(' '), dripMs));
      },
    },
  });
  return {
    url: `http://127.0.0.1:${listener.port}/`,
    open: () => open,
    [Symbol.dispose]() {
      for (const timer of timers) clearInterval(timer);
      listener.stop(true);
    },
  };
}

describe.each([
  ['stalls', undefined],
  ['drips', 5],
])('a backend that %s in the middle of every answer', (_, dripMs) => {
  test('holds up nobody else, is unreachable, and keeps no connection and no stop waiting', async () => {
    const { clock, advance } = createVirtualClock();
    await using good = startLiveNode();
    using bad = startStalling(dripMs);
    const backends = [good, bad].map(({ url: at }) => backendOf({ at, clock }));
    const { probeAll } = forwardOf(backends, clock).pool;
    const stop = new AbortController();
    for (let round = 0; round < 4; round++) {
      const looking = probeAll(stop.signal);
      while (bad.open() === 0) await Bun.sleep(1); // until it has been asked
      await Bun.sleep(20); // the good one answers meanwhile
      advance(1_000);
      await looking;
      advance(1_000); // the questions' own limit
      while (bad.open() > 0) await Bun.sleep(1); // bounded by the test's own timeout
      good.now.slot += 5;
    }
    expect(backends.map(({ health }) => health.excludedBecause)).toEqual([undefined, 'unreachable']);
    expect(backends[0]?.slots.tip.processed).toBe(1_015);

    const last = probeAll(stop.signal);
    while (bad.open() === 0) await Bun.sleep(1); // until it has been asked
    stop.abort();
    advance(1_000);
    await last;
    while (bad.open() > 0) await Bun.sleep(1); // bounded by the test's own timeout
    expect(bad.open()).toBe(0);
    for (const { client } of backends) client.close();
  });
});
