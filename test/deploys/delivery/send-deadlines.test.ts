import { expect, test } from 'bun:test';
import type { Sent } from '../../../deploys/outbox/outcome.ts';
import { createDrip, endlessInterim, silent } from '../../fakes/receiver-faults.ts';
import { CONTENT, startReceiver } from '../../fakes/receiver.ts';
import { startTcpProxy } from '../../fakes/tcp-proxy.ts';
import { createAttemptClock, gist, NAME, sendTo, startGood } from './sending.ts';

type AttemptClock = ReturnType<typeof createAttemptClock>;

/** What has come of the attempt `ms` later, and 1 ms before that: the deadline to the millisecond. */
async function around(sending: Promise<Sent>, clock: AttemptClock, ms: number) {
  let before: Sent | undefined;
  void sending.then((sent) => (before = sent));
  await clock.advance(ms - 1);
  expect(before).toBeUndefined();
  await clock.advance(1);
  const sent = await sending;
  expect(clock.sleepers()).toBe(0);
  return sent;
}

test('a receiver that accepts and never answers has failed after 10 s, and is let go (E1)', async () => {
  const clock = createAttemptClock();
  using receiver = await startGood({ script: silent });
  const sending = sendTo(receiver.url(NAME), { clock });
  const visit = await receiver.visit();
  const sent = await around(sending, clock, 10_000);
  expect([gist(sent), sent.phases.totalMs]).toEqual(['timeout: no response within 10 s', 10_000]);
  await visit.gone;
});

test('a head that drips has failed after 10 s, however busy the connection is (E2, P9)', async () => {
  const clock = createAttemptClock();
  const drip = createDrip('HTTP/1.1 200 OK\r\n');
  using receiver = await startGood({ script: drip.script });
  const sending = sendTo(receiver.url(NAME), { clock });
  for (let second = 0; second < 9; second++) {
    await drip.next();
    await clock.advance(1_000);
  }
  expect(gist(await around(sending, clock, 1_000))).toBe('timeout: no response within 10 s');
  await (
    await drip.visit
  ).gone;
});

test('a body that drips leaves the status, and is let go after 10 s (E3, P9)', async () => {
  const clock = createAttemptClock();
  const drip = createDrip(['HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n', ...'abcdefgh']);
  using receiver = await startGood({ script: drip.script });
  const sending = sendTo(receiver.url(NAME), { clock });
  await drip.next();
  await clock.ended('firstByteMs');
  for (let second = 0; second < 8; second++) {
    await drip.next();
    await clock.advance(1_000);
  }
  const sent = await around(sending, clock, 2_000);
  expect(sent).toMatchObject({ kind: 'answered', status: 200, bodyKind: 'incomplete' });
  expect(sent.phases.totalMs).toBe(10_000);
  await (
    await drip.visit
  ).gone;
});

test('interim answers without end have failed after 10 s, and are not read (E8)', async () => {
  const clock = createAttemptClock();
  const stuck = Promise.withResolvers<void>();
  using receiver = await startGood({
    script: (visit) => {
      const send = (bytes: string | Uint8Array) => {
        const sent = visit.send(bytes);
        // Room that does not come for so long is room that nobody makes.
        const timer = setTimeout(stuck.resolve, 300);
        return sent.finally(() => clearTimeout(timer));
      };
      return endlessInterim({ ...visit, send });
    },
  });
  const sending = sendTo(receiver.url(NAME), { clock });
  const visit = await receiver.visit();
  await stuck.promise;
  expect(gist(await around(sending, clock, 10_000))).toBe('timeout: no response within 10 s');
  await visit.gone;
});

test('a TLS handshake of 5 s and an answer 4 s later are within the 10 s (E36)', async () => {
  const clock = createAttemptClock();
  const drip = createDrip([CONTENT]);
  using receiver = await startGood({ script: drip.script });
  using proxy = startTcpProxy(receiver.port);
  proxy.become('black-hole');
  const sending = sendTo(new URL(`https://${NAME}:${proxy.port}/hook`), { clock });
  await clock.ended('connectMs');
  await clock.advance(5_000);
  proxy.become('forward');
  await clock.ended('tlsMs');
  await clock.advance(4_000);
  await drip.next();
  expect(gist(await sending)).toBe('200 whole ok');
});

test('a TLS handshake that stalls has failed after 10 s (E11)', async () => {
  const clock = createAttemptClock();
  using receiver = await startReceiver({ script: silent });
  const sending = sendTo(receiver.url(NAME), { clock });
  await clock.ended('connectMs');
  expect(gist(await around(sending, clock, 10_000))).toBe('tls_timeout: no TLS handshake within 10 s');
  await (
    await receiver.visit()
  ).gone;
});

test('an attempt that is given up ends at once: before, during, and after the status line', async () => {
  const stop = new AbortController();
  const { signal } = stop;
  const drip = createDrip(['HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nabc']);
  using quiet = await startGood({ script: silent });
  using dripping = await startGood({ script: drip.script });
  const clock = createAttemptClock();
  const during = sendTo(quiet.url(NAME), { signal });
  const after = sendTo(dripping.url(NAME), { signal, clock });
  await drip.next();
  await Promise.all([quiet.visit(), clock.ended('firstByteMs')]);
  stop.abort();
  const before = sendTo(quiet.url(NAME), { signal });
  const stopped = 'aborted: the service is stopping';
  expect((await Promise.all([before, during])).map(gist)).toEqual([stopped, stopped]);
  expect(await after).toMatchObject({ status: 200, bodyKind: 'incomplete' });
  expect(quiet.connections()).toBe(1);
  await (
    await quiet.visit()
  ).gone;
});
