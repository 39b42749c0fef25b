import { expect, test } from 'bun:test';
import { X509Certificate } from 'node:crypto';
import { Resolver } from 'node:dns/promises';
import type { Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { openCaller } from './raw-caller.ts';
import { createAuthority, selfSigned } from './receiver-certificates.ts';
import { startDns } from './receiver-dns.ts';
import { createDrip, hangsUp, resets, says } from './receiver-faults.ts';
import { CONTENT, startReceiver } from './receiver.ts';

const REQUEST = 'POST /hook HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}';
const AUTHORITY = createAuthority();
const certificate = AUTHORITY.issue({ dns: ['a.example'] });

/** What comes over a connection until it ends, and how it ends. */
function until(socket: Socket, enough = Infinity): Promise<{ text: string; ended: string }> {
  let text = '';
  return new Promise((resolve) => {
    socket.on('data', (bytes) => {
      text += bytes.toString('latin1');
      if (text.length >= enough) resolve({ text, ended: 'no' });
    });
    socket.on('end', () => resolve({ text, ended: 'end' }));
    socket.on('error', (error: Error & { code?: string }) => resolve({ text, ended: error.code ?? 'error' }));
  });
}

function secure(port: number): Socket {
  const socket = connectTls({ port, host: '127.0.0.1', servername: 'a.example', ca: AUTHORITY.cert });
  socket.write(REQUEST);
  return socket;
}

test('the receiver sees the whole request and the name, and writes exactly the bytes of its script', async () => {
  using receiver = await startReceiver({ certificate, script: (visit) => visit.send(CONTENT) });
  const socket = secure(receiver.port);
  expect((await until(socket, CONTENT.length)).text).toBe(CONTENT);
  const visit = await receiver.visit();
  const { text, serverName } = visit;
  expect([text, serverName, receiver.connections(), receiver.open()]).toEqual([REQUEST, 'a.example', 1, 1]);
  socket.destroy();
  await visit.gone;
  expect([visit.isGone(), receiver.open()]).toEqual([true, 0]);
});

test('it ends and breaks connections, with TLS and without', async () => {
  for (const [script, ended] of [
    [hangsUp, 'end'],
    [resets, 'ECONNRESET'],
  ] as const) {
    using secured = await startReceiver({ certificate, script });
    expect((await until(secure(secured.port))).ended).toBe(ended);
    using bare = await startReceiver({ script });
    using caller = await openCaller(new URL(`http://127.0.0.1:${bare.port}`));
    expect(await caller.ended).toBe(ended === 'end' ? 'closed' : ended);
  }
});

test('without a certificate it sends first, and with one it offers one version of TLS if configured so', async () => {
  using receiver = await startReceiver({ script: says('hello') });
  using caller = await openCaller(new URL(`http://127.0.0.1:${receiver.port}`));
  expect(await caller.until('hello')).toBe('hello');
  using old = await startReceiver({ certificate, version: 'TLSv1', script: says(CONTENT) });
  expect((await until(secure(old.port))).ended).toStartWith('ERR_SSL');
});

test('a drip sends one piece for every turn', async () => {
  const drip = createDrip('ab');
  using receiver = await startReceiver({ script: drip.script });
  using caller = await openCaller(new URL(`http://127.0.0.1:${receiver.port}`));
  await drip.next();
  expect(await caller.until('a')).toBe('a');
  await drip.next();
  expect(await caller.until('b')).toBe('ab');
});

test('certificates have the claims that were given, and the authority signs its own alone', () => {
  const notAfter = new Date('2030-01-02T03:04:05Z');
  const leaf = AUTHORITY.issue({ dns: ['a.example', 'b.example'], ips: ['198.41.0.44'], notAfter });
  const read = new X509Certificate(leaf.cert);
  const root = new X509Certificate(AUTHORITY.cert);
  expect(read.subjectAltName).toBe('DNS:a.example, DNS:b.example, IP Address:198.41.0.44');
  expect(new Date(read.validTo)).toEqual(notAfter);
  expect([read.verify(root.publicKey), root.ca, read.ca]).toEqual([true, true, false]);
  const own = new X509Certificate(selfSigned({ dns: ['a.example'] }).cert);
  expect([own.verify(root.publicKey), own.verify(own.publicKey)]).toEqual([false, true]);
});

test('the name server answers by its zone, and counts', async () => {
  using dns = await startDns((name, type, nth) => {
    if (name === 'two.example') return type === 'A' ? ['1.2.3.4', '5.6.7.8'] : ['2001:db8::1'];
    if (name === 'turns.example') return [nth === 1 ? '1.1.1.1' : '2.2.2.2'];
    return name === 'broken.example' ? 'server-failure' : name === 'mute.example' ? 'silent' : 'no-such-name';
  });
  const resolver = new Resolver({ timeout: 100, tries: 1 });
  resolver.setServers([dns.address]);
  const codeOf = (name: string) =>
    resolver.resolve4(name).then(String, (error: Error & { code?: string }) => error.code);
  expect(await resolver.resolve4('two.example')).toEqual(['1.2.3.4', '5.6.7.8']);
  expect(await resolver.resolve6('two.example')).toEqual(['2001:db8::1']);
  expect([await codeOf('turns.example'), await codeOf('turns.example')]).toEqual(['1.1.1.1', '2.2.2.2']);
  expect([await codeOf('no.example'), await codeOf('broken.example'), await codeOf('mute.example')]).toEqual([
    'ENOTFOUND',
    'ESERVFAIL',
    'ETIMEOUT',
  ]);
  expect([dns.asked('turns.example', 'A'), dns.asked('two.example', 'AAAA')]).toEqual([2, 1]);
});
