import { describe, expect, test } from 'bun:test';
import { SEND_TEXTS } from '../../../deploys/outbox/outcome.ts';
import { selfSigned } from '../../fakes/receiver-certificates.ts';
import { saysAndEnds, saysAndResets, status } from '../../fakes/receiver-faults.ts';
import { CONTENT, startReceiver } from '../../fakes/receiver.ts';
import { AUTHORITY, BODY, gist, GOOD, loopbackPolicy, NAME, sendTo, startGood } from './sending.ts';

describe('the request', () => {
  test('is one POST with the bytes, the headers and the name that were asked for (P1, P3)', async () => {
    let lookups = 0;
    const resolve = () => (lookups++, Promise.resolve(['127.0.0.1']));
    using receiver = await startGood({ script: (visit) => visit.send(CONTENT) });
    const sent = await sendTo(receiver.url(NAME, '/hook?a=b'), { policy: { resolve } });
    expect(gist(sent)).toBe('200 whole ok');
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

  test('goes over a connection of its own, that is closed at the end', async () => {
    using receiver = await startGood({ script: (visit) => visit.send(CONTENT) });
    for (const _ of [1, 2]) await sendTo(receiver.url(NAME));
    await Promise.all(receiver.visits().map(({ gone }) => gone));
    expect([receiver.connections(), receiver.open()]).toEqual([2, 0]);
  });

  test('goes to an IP address as it stands, without a name in the handshake (P7)', async () => {
    using receiver = await startGood({ script: (visit) => visit.send(CONTENT) });
    const resolve = () => Promise.reject(new Error('must not be called'));
    expect(gist(await sendTo(receiver.url(), { policy: { resolve } }))).toBe('200 whole ok');
    expect(receiver.visits()[0]?.serverName).toBe('');
    expect(receiver.visits()[0]?.text.toLowerCase()).toContain(`host: 127.0.0.1:${receiver.port}\r\n`);
  });

  test('takes the next address when one refuses (P12)', async () => {
    using receiver = await startGood({ script: (visit) => visit.send(CONTENT) });
    const resolve = () => Promise.resolve(['127.0.0.2', '127.0.0.1']);
    const sent = await sendTo(receiver.url(NAME), { policy: { resolve } });
    expect([gist(sent), sent.kind === 'answered' && sent.remoteAddress]).toEqual([
      '200 whole ok',
      '127.0.0.1',
    ]);
  });

  test('has its phases timed, and the address noted', async () => {
    using receiver = await startGood({ script: (visit) => visit.send(CONTENT) });
    const { phases } = await sendTo(receiver.url(NAME));
    const { totalMs, ...parts } = phases;
    const sum = Object.values(parts).reduce<number>((total, part) => total + (part ?? Number.NaN), 0);
    expect(sum).toBeGreaterThan(0);
    expect(totalMs).toBeGreaterThanOrEqual(sum);
  });
});

describe('an answer is an answer, whatever its status (E7)', () => {
  test.each([200, 204, 299, 300, 304, 400, 404, 410, 429, 500, 599])('%d', async (code) => {
    using receiver = await startGood({
      script: saysAndEnds(status(code, 'Retry-After: 1\r\nX-A: 1\r\nx-a: 2\r\n')),
    });
    const sent = await sendTo(receiver.url(NAME));
    expect(gist(sent)).toBe(`${code} whole`);
    expect(sent.kind === 'answered' && sent.fields.slice(1)).toEqual([
      ['Retry-After', '1'],
      ['X-A', '1'],
      ['x-a', '2'],
    ]);
  });

  test.each([301, 302, 303, 307, 308])('%d is not followed (E6, P8)', async (code) => {
    using other = await startGood({ script: (visit) => visit.send(CONTENT) });
    for (const location of [other.url(NAME).href, 'https://169.254.169.254/latest/']) {
      using receiver = await startGood({ script: saysAndEnds(status(code, `location: ${location}\r\n`)) });
      expect(gist(await sendTo(receiver.url(NAME)))).toBe(`${code} whole`);
      expect(receiver.connections()).toBe(1);
    }
    expect(other.connections()).toBe(0);
  });

  test('a body that breaks off is kept as far as it came (E4, P11)', async () => {
    const head = 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf';
    for (const script of [saysAndEnds(head), saysAndResets(head)]) {
      using receiver = await startGood({ script });
      expect(gist(await sendTo(receiver.url(NAME)))).toBe('200 incomplete half');
    }
  });

  test('a body without a length ends with the connection', async () => {
    using receiver = await startGood({ script: saysAndEnds('HTTP/1.0 200 OK\r\n\r\nall') });
    expect(gist(await sendTo(receiver.url(NAME)))).toBe('200 whole all');
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

describe('a receiver that cannot be verified gets nothing (E11, P2)', () => {
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

  test('from an authority that is not trusted', async () => {
    using receiver = await startGood({ script: (visit) => visit.send(CONTENT) });
    const sent = await sendTo(receiver.url(NAME), { policy: { ca: undefined } });
    expect(gist(sent)).toBe('tls_error: the certificate is from an authority that is not trusted');
    expect(receiver.visits()).toEqual([]);
  });

  test('for a name, asked for by its address', async () => {
    using receiver = await startReceiver({
      certificate: AUTHORITY.issue({ dns: [NAME] }),
      script: (visit) => visit.send(CONTENT),
    });
    expect(gist(await sendTo(receiver.url()))).toBe('tls_error: the certificate is for another name');
    expect(receiver.visits()).toEqual([]);
  });

  test.each(['TLSv1', 'TLSv1.1'] as const)('with %s alone', async (version) => {
    using receiver = await startGood({ version, script: (visit) => visit.send(CONTENT) });
    expect(gist(await sendTo(receiver.url(NAME)))).toBe('tls_error: the receiver has no TLS 1.2 or later');
  });

  test.each(['TLSv1.2', 'TLSv1.3'] as const)('but one with %s alone does', async (version) => {
    using receiver = await startGood({ version, script: (visit) => visit.send(CONTENT) });
    expect(gist(await sendTo(receiver.url(NAME)))).toBe('200 whole ok');
  });
});

test('every code has a sentence of its own, without an address', () => {
  const texts = Object.values(SEND_TEXTS);
  expect(new Set(texts).size).toBe(texts.length);
  expect(texts.join('\n')).not.toMatch(/\d+\.\d+\.\d+/);
});

test('the policy of tests differs from the real one where it says so', () => {
  expect(Object.keys(loopbackPolicy()).toSorted()).toEqual(
    ['allowedPorts', 'ca', 'isPublic', 'ownHosts', 'resolve'].toSorted(),
  );
  expect(GOOD.cert).not.toBe(AUTHORITY.cert);
});
