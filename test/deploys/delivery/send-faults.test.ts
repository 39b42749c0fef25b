import { expect, test } from 'bun:test';
import {
  endless,
  endlessBody,
  endlessHead,
  gzipBomb,
  hangsUp,
  resets,
  says,
  saysAndEnds,
  saysAndResets,
  saysEach,
  status,
} from '../../fakes/receiver-faults.ts';
import { type ReceiverScript, startReceiver } from '../../fakes/receiver.ts';
import { gist, NAME, sendTo, startGood } from './sending.ts';

const OK = 'HTTP/1.1 200 OK\r\n';
const INTERIM = 'HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\n';
const EMPTY = 'content-length: 0\r\n\r\n';

test.each<[string, ReceiverScript, RegExp]>([
  ['breaks the connection at once (E5)', resets, /^connection_reset: /],
  ['ends the connection at once', hangsUp, /^connection_reset: /],
  [
    'speaks plain HTTP on the port of TLS (E12)',
    says(status(400)),
    /^tls_error: the port does not speak TLS$/,
  ],
  ['speaks another protocol', says('SSH-2.0-OpenSSH_9.6\r\n'), /^tls_error: the port does not speak TLS$/],
])('before TLS, a receiver that %s', async (_, script, expected) => {
  using receiver = await startReceiver({ script });
  expect(gist(await sendTo(receiver.url(NAME)))).toMatch(expected);
  await (
    await receiver.visit()
  ).gone;
});

test.each<[string, ReceiverScript, RegExp]>([
  ['breaks the connection (E5)', resets, /^connection_reset: /],
  ['ends the connection', hangsUp, /^connection_reset: /],
  ['breaks it within the head', saysAndResets(`${OK}cont`), /^connection_reset: /],
  ['ends it within the head', saysAndEnds(`${OK}cont`), /^connection_reset: /],
  ['ends it after an interim answer', saysAndEnds('HTTP/1.1 199 X\r\n\r\n'), /^connection_reset: /],
  ['answers another protocol', says('SSH-2.0-OpenSSH\r\n\r\n'), /^bad_response: /],
  ['answers HTTP/2', says('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), /^bad_response: /],
  [
    'switches protocols',
    says('HTTP/1.1 101 X\r\nconnection: upgrade\r\nupgrade: a\r\n\r\n'),
    /^bad_response: /,
  ],
  ['answers status 000', says('HTTP/1.1 000 X\r\ncontent-length: 0\r\n\r\n'), /^bad_response: /],
  ['answers status 1000', says('HTTP/1.1 1000 X\r\ncontent-length: 0\r\n\r\n'), /^bad_response: /],
  ['puts NUL into a header (E10)', says(`${OK}x-a: a\0b\r\n${EMPTY}`), /^bad_response: /],
  ['puts NUL into a name (E10)', says(`${OK}x\0a: b\r\n${EMPTY}`), /^bad_response: /],
  ['gives 20 kB of headers (E36)', says(`${OK}x-a: ${'y'.repeat(20_480)}\r\n${EMPTY}`), /^200 whole$/],
  [
    'gives 20 kB in 200 headers (E36)',
    says(`${OK}${`x-a: ${'y'.repeat(95)}\r\n`.repeat(200)}${EMPTY}`),
    /^200 whole$/,
  ],
  ['gives 64 kB of headers (E10)', says(`${OK}x-a: ${'y'.repeat(65_536)}\r\n${EMPTY}`), /^bad_response: /],
  ['gives headers without end', endlessHead, /^bad_response: /],
  ['gives two lengths', says(`${OK}content-length: 1\r\n${EMPTY}`), /^bad_response: /],
  ['gives a length and chunks', says(`${OK}transfer-encoding: chunked\r\n${EMPTY}`), /^bad_response: /],
  ['ends lines without CR', says('HTTP/1.1 200 OK\ncontent-length: 0\n\n'), /^bad_response: /],
  [
    'gives a body that lies about its chunks',
    says(`${OK}transfer-encoding: chunked\r\n\r\n2\r\nok\r\nZZ\r\n`),
    /^200 incomplete ok$/,
  ],
  [
    'gives a chunk whose head never ends',
    endless(`${OK}transfer-encoding: chunked\r\n\r\n5;`, 'x'.repeat(65_536)),
    /^200 incomplete$/,
  ],
  ['says more than its length', says(`${OK}content-length: 2\r\n\r\nok${status(500)}`), /^200 whole ok$/],
  ['gives 25 interim answers first (E36)', saysEach([...Array(25).fill(INTERIM), OK + EMPTY]), /^200 whole$/],
  ['answers 100 first', says(`HTTP/1.1 100 Continue\r\n\r\n${OK}${EMPTY}`), /^200 whole$/],
])('after the request, a receiver that %s', async (_, script, expected) => {
  using receiver = await startGood({ script });
  expect(gist(await sendTo(receiver.url(NAME)))).toMatch(expected);
  await (
    await receiver.visit()
  ).gone;
  expect(receiver.connections()).toBe(1);
});

test('bytes above ASCII in a header are kept, each as one character (E10)', async () => {
  using receiver = await startGood({ script: says(`${OK}X-A: \xe9\xff\r\n${EMPTY}`) });
  const sent = await sendTo(receiver.url(NAME));
  expect(sent.kind === 'answered' && sent.fields[0]).toEqual(['X-A', '\xe9\xff']);
});

test('of a long head 16 KiB of fields are kept (E36)', async () => {
  const field = `x-a: ${'y'.repeat(95)}\r\n`;
  using receiver = await startGood({ script: says(`${OK}${field.repeat(200)}${EMPTY}`) });
  const sent = await sendTo(receiver.url(NAME));
  expect(sent.kind === 'answered' && sent.fields.length).toBe(Math.floor(16_384 / 98));
});

test('a body without end is let go after 16 KiB, and costs no memory (E9, P10)', async () => {
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

test('nobody listens there', async () => {
  using receiver = await startGood({ script: resets });
  const url = receiver.url(NAME);
  receiver[Symbol.dispose]();
  expect(gist(await sendTo(url))).toBe('connection_refused: ECONNREFUSED');
  const two = { resolve: () => Promise.resolve(['127.0.0.2', '127.0.0.3']) };
  expect(gist(await sendTo(url, { policy: two }))).toBe('connection_refused: ECONNREFUSED');
});
