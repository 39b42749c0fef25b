import { describe, expect, test } from 'bun:test';
import { createPost, createStopwatch } from '../../../deploys/delivery/post.ts';
import { type Sent } from '../../../deploys/outbox/outcome.ts';
import { systemClock } from '../../../shared/clock.ts';
import { selfSigned } from '../../started/receiver-certificates.ts';
import {
  endless,
  endlessBody,
  endlessHead,
  gzipBomb,
  resets,
  says,
  saysAndEnds,
  saysAndResets,
  saysEach,
  status,
  createDrip,
  endlessInterim,
  silent,
} from '../../fakes/receiver-faults.ts';
import { CONTENT, type ReceiverScript, startReceiver, type Visit } from '../../fakes/receiver.ts';
import { startTcpProxy } from '../../started/tcp-proxy.ts';
import { AUTHORITY, BODY, gist, NAME, sendTo, startGood, createAttemptClock } from './sending.ts';

describe('the request', () => {
  test('is one POST with the bytes, the headers and the name that were asked for', async () => {
    let lookups = 0;
    const resolve = () => (lookups++, Promise.resolve(['127.0.0.1']));
    using receiver = await startGood({ script: (visit) => visit.send(CONTENT) });
    const sent = await sendTo(receiver.url(NAME, '/hook?a=b'), { policy: { resolve } });
    expect(gist(sent)).toBe('200 whole ok');
    const { totalMs, dnsMs = NaN, connectMs = NaN, tlsMs = NaN, firstByteMs = NaN } = sent.phases;
    expect(totalMs).toBeGreaterThanOrEqual(dnsMs + connectMs + tlsMs + firstByteMs);
    const [visit, ...others] = receiver.visits();
    expect(others).toEqual([]);
    const [head = '', body] = (visit?.text ?? '').split('\r\n\r\n');
    const [line, ...fields] = head.toLowerCase().split('\r\n');
    expect(line).toBe('post /hook?a=b http/1.1');
    expect(fields.toSorted()).toEqual([
      'accept-encoding: identity',
      'connection: close',
      `content-length: ${BODY.length}`,
      'content-type: application/json',
      `host: ${NAME}:${receiver.port}`,
      'user-agent: sluice-webhooks/0.1.0',
      'x-service-event: ping',
    ]);
    expect([body, visit?.serverName, lookups]).toEqual([BODY.toString(), NAME, 1]);
  });

  test('goes to an IP address as it stands, without a name in the handshake', async () => {
    using receiver = await startGood({ script: (visit) => visit.send(CONTENT) });
    const resolve = () => Promise.reject(new Error('must not be called'));
    expect(gist(await sendTo(receiver.url(), { policy: { resolve } }))).toBe('200 whole ok');
    expect(receiver.visits()[0]?.serverName).toBe('');
    expect(receiver.visits()[0]?.text.toLowerCase()).toContain(`host: 127.0.0.1:${receiver.port}\r\n`);
  });

  test('takes the next address when one refuses, and has failed when all do', async () => {
    using receiver = await startGood({ script: (visit) => visit.send(CONTENT) });
    const to = (...addresses: string[]) =>
      sendTo(receiver.url(NAME), { policy: { resolve: () => Promise.resolve(addresses) } });
    const sent = await to('127.0.0.2', '127.0.0.1');
    expect(sent).toMatchObject({ kind: 'answered', status: 200, remoteAddress: '127.0.0.1' });
    for (const addresses of [['127.0.0.2'], ['127.0.0.2', '127.0.0.3']])
      expect(gist(await to(...addresses))).toBe('connection_refused: ECONNREFUSED');
  });
});

describe('an answer is an answer, whatever its status (E7)', () => {
  test.each([200, 204, 299, 304, 404, 429, 599])('%d', async (code) => {
    using receiver = await startGood({
      script: saysAndEnds(status(code, 'Retry-After: 1\r\nX-A: 1\r\nx-a: 2\r\n')),
    });
    const sent = await sendTo(receiver.url(NAME));
    expect(gist(sent)).toBe(`${code} whole`);
    expect(sent.kind === 'answered' && sent.fields.slice(1).join()).toBe('Retry-After,1,X-A,1,x-a,2');
  });

  test.each([301, 302, 303, 307, 308])('%d is not followed (E6)', async (code) => {
    using other = await startGood({ script: (visit) => visit.send(CONTENT) });
    for (const location of [other.url(NAME).href, 'https://169.254.169.254/latest/']) {
      using receiver = await startGood({ script: saysAndEnds(status(code, `location: ${location}\r\n`)) });
      expect(gist(await sendTo(receiver.url(NAME)))).toBe(`${code} whole`);
      expect(receiver.connections()).toBe(1);
    }
    expect(other.connections()).toBe(0);
  });

  test('a body that breaks off is kept up to there (E4)', async () => {
    const head = 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf';
    for (const script of [saysAndEnds(head), saysAndResets(head)]) {
      using receiver = await startGood({ script });
      expect(gist(await sendTo(receiver.url(NAME)))).toBe('200 incomplete half');
    }
  });

  test.each([
    [16_384, 16_384, 'whole'],
    [16_385, 16_384, 'cut'],
  ])('of %d bytes of a body %d are kept: %s', async (length, kept, bodyKind) => {
    const answer = `HTTP/1.1 200 OK\r\ncontent-length: ${length}\r\n\r\n${'x'.repeat(length)}`;
    using receiver = await startGood({ script: (visit) => visit.send(answer) });
    const sent = await sendTo(receiver.url(NAME));
    expect(sent).toMatchObject({ kind: 'answered', bodyKind });
    expect(sent.kind === 'answered' && sent.body.length).toBe(kept);
  });
});

describe('a receiver that cannot be verified gets nothing (E11)', () => {
  const day = 86_400_000;
  const past = { notBefore: new Date(Date.now() - 2 * day), notAfter: new Date(Date.now() - day) };
  const future = { notBefore: new Date(Date.now() + day), notAfter: new Date(Date.now() + 2 * day) };
  const dns = [NAME];
  test.each([
    [
      'for another name',
      AUTHORITY.issue({ dns: ['other.example.com'] }),
      'the certificate is for another name',
    ],
    ['expired', AUTHORITY.issue({ dns, ...past }), 'the certificate has expired'],
    ['not valid yet', AUTHORITY.issue({ dns, ...future }), 'the certificate is not valid yet'],
    ['self-signed', selfSigned({ dns }), 'the certificate is self-signed'],
  ])('%s', async (_, certificate, detail) => {
    using receiver = await startReceiver({ certificate, script: (visit) => visit.send(CONTENT) });
    expect(gist(await sendTo(receiver.url(NAME)))).toBe(`tls_error: ${detail}`);
    expect([receiver.connections(), receiver.visits()]).toEqual([1, []]);
  });

  test('from an authority that is not trusted, or for a name and asked for by its address', async () => {
    using receiver = await startReceiver({
      certificate: AUTHORITY.issue({ dns: [NAME] }),
      script: (visit) => visit.send(CONTENT),
    });
    const sent = await sendTo(receiver.url(NAME), { policy: { ca: undefined } });
    expect(gist(sent)).toBe('tls_error: the certificate is from an authority that is not trusted');
    expect(gist(await sendTo(receiver.url()))).toBe('tls_error: the certificate is for another name');
    expect(receiver.visits()).toEqual([]);
  });

  test.each([
    ['TLSv1', 'tls_error: the receiver does not support TLS 1.2 or later'],
    ['TLSv1.1', 'tls_error: the receiver does not support TLS 1.2 or later'],
    ['TLSv1.2', '200 whole ok'],
    ['TLSv1.3', '200 whole ok'],
  ] as const)('with %s alone: %s', async (version, expected) => {
    using receiver = await startGood({ version, script: (visit) => visit.send(CONTENT) });
    expect(gist(await sendTo(receiver.url(NAME)))).toBe(expected);
  });
});

const post = createPost(AUTHORITY.cert, systemClock);
const postTo = (url: URL, headers: Record<string, string>, address = '127.0.0.1') =>
  post(
    { url, headers, body: BODY, pins: [{ address, family: 4 }] },
    createStopwatch(systemClock),
    new AbortController().signal,
  );

test('a connection to an address that is no pin is closed before anything is sent', async () => {
  using receiver = await startGood({ script: (visit) => visit.send(CONTENT) });
  // An address in the URL is connected to as it stands, so it shows what a way around the pins would do.
  const posted = await postTo(receiver.url('127.0.0.1'), {}, '127.0.0.2');
  expect(posted).toMatchObject({ kind: 'failed', code: 'blocked_address' });
  expect(receiver.visits()).toEqual([]);
});

test('a request that cannot be made is a failed attempt', async () => {
  using receiver = await startGood({ script: (visit) => visit.send(CONTENT) });
  const posted = await postTo(receiver.url('127.0.0.1'), { 'x-bad': 'a\nb' });
  expect(posted).toMatchObject({ kind: 'failed', code: 'internal_error' });
  expect(receiver.connections()).toBe(0);
});

const OK = 'HTTP/1.1 200 OK\r\n';
const CHUNKED = `${OK}transfer-encoding: chunked\r\n\r\n`;
const INTERIM = 'HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\n';
const EMPTY = 'content-length: 0\r\n\r\n';

test.each<[string, ReceiverScript, RegExp]>([
  ['breaks the connection at once (E5)', resets, /^connection_reset: /],
  [
    'speaks plain HTTP on the port of TLS (E12)',
    says(status(400)),
    /^tls_error: the port does not speak TLS$/,
  ],
])('before TLS, a receiver that %s', async (_, script, expected) => {
  using receiver = await startReceiver({ script });
  expect(gist(await sendTo(receiver.url(NAME)))).toMatch(expected);
  await released(receiver.visit());
});

test.each<[string, ReceiverScript, RegExp]>([
  ['breaks the connection (E5)', resets, /^connection_reset: /],
  ['ends it within the head', saysAndEnds(`${OK}cont`), /^connection_reset: /],
  ['answers another protocol', says('SSH-2.0-OpenSSH\r\n\r\n'), /^bad_response: /],
  ['switches protocols', says('HTTP/1.1 101 X\r\nupgrade: a\r\n\r\n'), /^bad_response: /],
  ['answers status 000', says('HTTP/1.1 000 X\r\ncontent-length: 0\r\n\r\n'), /^bad_response: /],
  ['puts NUL into a header (E10)', says(`${OK}x-a: a\0b\r\n${EMPTY}`), /^bad_response: /],
  ['gives 20 kB of headers (E36)', says(`${OK}x-a: ${'y'.repeat(20_480)}\r\n${EMPTY}`), /^200 whole$/],
  ['gives 64 kB of headers (E10)', says(`${OK}x-a: ${'y'.repeat(65_536)}\r\n${EMPTY}`), /^bad_response: /],
  ['gives headers without end', endlessHead, /^bad_response: /],
  ['gives a body that lies about its chunks', says(`${CHUNKED}2\r\nok\r\nZZ\r\n`), /^200 incomplete ok$/],
  ['gives a chunk whose head never ends', endless(`${CHUNKED}5;`, 'x'.repeat(65_536)), /^200 incomplete$/],
  ['gives 25 interim answers first (E36)', saysEach([...Array(25).fill(INTERIM), OK + EMPTY]), /^200 whole$/],
  ['ends a body without a length', saysAndEnds('HTTP/1.0 200 OK\r\n\r\nall'), /^200 whole all$/],
])('after the request, a receiver that %s', async (_, script, expected) => {
  using receiver = await startGood({ script });
  expect(gist(await sendTo(receiver.url(NAME)))).toMatch(expected);
  await released(receiver.visit());
  expect(receiver.connections()).toBe(1);
});

test('of a long head 16 KiB of fields are kept (E36)', async () => {
  const field = `x-a: ${'y'.repeat(95)}\r\n`;
  using receiver = await startGood({ script: says(`${OK}${field.repeat(200)}${EMPTY}`) });
  const sent = await sendTo(receiver.url(NAME));
  expect(sent.kind === 'answered' && sent.fields.length).toBe(Math.floor(16_384 / 98));
});

test('a body without end is let go after 16 KiB, and costs no memory (E9)', async () => {
  using receiver = await startGood({ script: endlessBody });
  await sendTo(receiver.url(NAME)); // what is allocated once
  Bun.gc(true);
  const rssBytes = process.memoryUsage().rss;
  for (let nth = 0; nth < 20; nth++) {
    const sent = await sendTo(receiver.url(NAME));
    expect(sent).toMatchObject({ kind: 'answered', status: 200, bodyKind: 'cut' });
    expect(sent.kind === 'answered' && sent.body.length).toBe(16_384);
  }
  await Promise.all(receiver.visits().map(({ gone }) => gone));
  expect(process.memoryUsage().rss - rssBytes).toBeLessThan(64_000_000);
  expect(receiver.open()).toBe(0);
});

test('a gzip bomb stays packed (E9)', async () => {
  using receiver = await startGood({ script: gzipBomb });
  const sent = await sendTo(receiver.url(NAME));
  expect(sent).toMatchObject({ kind: 'answered', status: 200, bodyKind: 'whole' });
  expect(sent.kind === 'answered' && [...sent.body.subarray(0, 2)]).toEqual([0x1f, 0x8b]);
});

/** Waits until the receiver's connection is closed. */
const released = async (visit: Promise<Visit>) => (await visit).gone;

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

test('a receiver that accepts and never answers has failed after 10 s, and is let go (E1, §6 webhook response)', async () => {
  const clock = createAttemptClock();
  using receiver = await startGood({ script: silent });
  const sending = sendTo(receiver.url(NAME), { clock });
  const visit = await receiver.visit();
  const sent = await around(sending, clock, 10_000);
  expect([gist(sent), Math.round(sent.phases.totalMs)]).toEqual(['timeout: no response within 10 s', 10_000]);
  await visit.gone;
});

test('a head that drips has failed after 10 s, however busy the connection is (E2)', async () => {
  const clock = createAttemptClock();
  const drip = createDrip('HTTP/1.1 200 OK\r\n');
  using receiver = await startGood({ script: drip.script });
  const sending = sendTo(receiver.url(NAME), { clock });
  for (let second = 0; second < 9; second++) {
    await drip.next();
    await clock.advance(1_000);
  }
  expect(gist(await around(sending, clock, 1_000))).toBe('timeout: no response within 10 s');
  await released(drip.visit);
});

test('a body that drips leaves the status, and is let go after 10 s (E3)', async () => {
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
  expect(Math.round(sent.phases.totalMs)).toBe(10_000);
  await released(drip.visit);
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
  await released(receiver.visit());
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
  await released(quiet.visit());
});
