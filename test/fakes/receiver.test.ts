import { expect, test } from 'bun:test';
import { X509Certificate } from 'node:crypto';
import { Resolver } from 'node:dns/promises';
import type { Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { openCaller } from './raw-caller.ts';
import { createAuthority, selfSigned } from '../started/receiver-certificates.ts';
import { startDns } from '../started/receiver-dns.ts';
import { hangsUp, resets } from './receiver-faults.ts';
import { startReceiver } from './receiver.ts';

const REQUEST = 'POST /hook HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}';
const AUTHORITY = createAuthority();
const certificate = AUTHORITY.issue({ dns: ['a.example'] });

/** How a connection ends. */
function endOf(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    socket.on('end', () => resolve('end')).resume();
    socket.on('error', (error: Error & { code?: string }) => resolve(error.code ?? 'error'));
  });
}

function secure(port: number): Socket {
  const socket = connectTls({ port, host: '127.0.0.1', servername: 'a.example', ca: AUTHORITY.cert });
  socket.write(REQUEST);
  return socket;
}

test('the receiver ends and breaks connections, with TLS and without', async () => {
  for (const [script, ended] of [
    [hangsUp, 'end'],
    [resets, 'ECONNRESET'],
  ] as const) {
    using secured = await startReceiver({ certificate, script });
    expect(await endOf(secure(secured.port))).toBe(ended);
    using bare = await startReceiver({ script });
    using caller = await openCaller(new URL(`http://127.0.0.1:${bare.port}`));
    expect(await caller.ended).toBe(ended === 'end' ? 'closed' : ended);
  }
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
