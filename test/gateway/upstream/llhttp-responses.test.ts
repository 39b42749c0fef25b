import { expect, test } from 'bun:test';
import { startRawBackend } from '../../fakes/raw-backend.ts';
import { clientOf, REQUEST } from './of.ts';

/*
 * A table of our own after the cases of llhttp's responses (nodejs/llhttp 9.4, `test/response/*.md`), against the client of
 * backends. Its lenient modes, its pausing and answers to HEAD have no counterpart here.
 *
 * A row is what a backend sends, and what comes of it: `refused`, or a status and a body; whether the connection is `kept`
 * for another request, is `closed`, or is `ended` by the backend, which is the end of the body. ⏎ is CR LF, ␍ ␊ ␉ one byte.
 */
const AGREED = `
  connection.md
  HTTP/1.0 200 OK⏎Connection: keep-alive⏎⏎HTTP/1.0 200 OK | 200 HTTP/1.0 200 OK | ended
  HTTP/1.0 204 No content⏎Connection: keep-alive⏎⏎ | 204 | kept
  HTTP/1.1 200 OK⏎⏎HTTP/1.1 200 OK | 200 HTTP/1.1 200 OK | ended
  HTTP/1.1 204 No content⏎⏎ | 204 | kept
  HTTP/1.1 204 No content⏎Connection: close⏎⏎HTTP/1.1 200 OK⏎⏎ | 204 | closed
  HTTP/1.1 200 OK⏎Content-Length: 5⏎Connection: close⏎⏎2ad731e3-4dcd | 200 2ad73 | closed
  HTTP/1.1 200 OK⏎Connection: upgrade⏎Upgrade: h2c⏎⏎body | 200 body | ended
  HTTP/1.1 200 OK⏎Connection: upgrade⏎Upgrade: h2c⏎Content-Length: 4⏎⏎body | 200 body | kept
  HTTP/1.1 200 OK⏎Connection: upgrade⏎Upgrade: h2c⏎Transfer-Encoding: chunked⏎⏎2⏎bo⏎2⏎dy⏎0⏎⏎ | 200 body | kept
  HTTP/1.1 304 Not Modified⏎Content-Length: 10⏎⏎ | 304 | kept
  HTTP/1.1 304 Not Modified⏎Transfer-Encoding: chunked⏎⏎ | 304 | kept
  HTTP/1.1 100 Continue⏎⏎HTTP/1.1 404 Not Found⏎Content-Length: 14⏎⏎404: Not Found | 404 404: Not Found | kept
  HTTP/1.1 103 Early Hints⏎Link: </a>; rel=preload⏎⏎HTTP/1.1 200 OK⏎Content-Length: 2⏎⏎ok | 200 ok | kept
  content-length.md
  HTTP/1.1 200 OK⏎Content-Type: text/xml⏎Connection: close⏎⏎<a>␊</a> | 200 <a>␊</a> | ended
  HTTP/1.1 200 OK⏎Content-Length-X: 0⏎Transfer-Encoding: chunked⏎⏎2⏎OK⏎0⏎⏎ | 200 OK | kept
  HTTP/1.1 200 OK⏎Content-Length:␉5␉⏎⏎hello | 200 hello | kept
  finish.md
  HTTP/1.1 200 OK⏎⏎ | 200 | ended
  invalid.md
  HTP/1.1 200 OK⏎⏎ | refused | closed
  HTTP/01.1 200 OK⏎⏎ | refused | closed
  HTTP/11.1 200 OK⏎⏎ | refused | closed
  HTTP/1.01 200 OK⏎⏎ | refused | closed
  HTTP/1.1␉200 OK⏎⏎ | refused | closed
  ␍HTTP/1.1␉200 OK⏎⏎ | refused | closed
  HTTP/1.1 200 OK⏎Foo: 1␍Bar: 2⏎⏎ | refused | closed
  HTTP/1.1 200 OK␍Content-Length: 0⏎⏎ | refused | closed
  HTTP/1.1 200 OK␍␍Content-Length: 4⏎⏎Evil | refused | closed
  HTTP/5.6 200 OK⏎⏎ | refused | closed
  HTTP/1.1 200 OK⏎ Host: foo⏎⏎ | refused | closed
  HTTP/1.1  200 OK⏎⏎ | refused | closed
  HTTP/1.1 200  OK⏎Content-Length: 0⏎⏎ | 200 | kept
  HTTP/1.1 2 OK⏎⏎ | refused | closed
  HTTP/1.1 200 OK␊Content-Length: 0␊␊ | refused | ended
  HTTP/1.1 200 OK␊Foo: abc␊Bar: def␊␊BODY␊ | refused | ended
  sample.md
  HTTP/1.1 200 OK⏎Header1: Value1⏎Header2:␉ Value2⏎Content-Length: 0⏎⏎ | 200 | kept
  HTTPER/1.1 200 OK⏎⏎ | refused | closed
  HTTP/1.1 301 Moved Permanently⏎X-$PrototypeBI-Version: 1⏎Content-Length:  6  ⏎⏎<HTML> | 301 <HTML> | kept
  HTTP/1.1 301 MovedPermanently⏎p3p: a="http://a/p.xml",CP="CAO"⏎Transfer-Encoding: chunked⏎⏎1⏎␊⏎0⏎⏎ | 301 ␊ | kept
  HTTP/1.1 404 Not Found⏎⏎ | 404 | ended
  HTTP/1.1 301⏎⏎ | 301 | ended
  HTTP/1.1 200 ⏎⏎ | 200 | ended
  HTTP/1.1 200 OK␊Content-Type: text/html␊Connection: close␊␊these | refused | ended
  HTTP/1.1 200 OK⏎Content-Length: 0⏎DCLK_imp: v7;x;~okv=;~cs=o⏎⏎ | 200 | kept
  HTTP/1.0 301 Moved⏎Pragma: ⏎Location: http://a/⏎Content-Length: 0⏎Connection: keep-alive⏎⏎ | 301 | kept
  HTTP/1.1 200 OK⏎.et-Cookie: a=b; path=/⏎_onnection: Keep-Alive⏎Transfer-Encoding: chunked⏎Connection: close⏎⏎0⏎⏎ | 200 | closed
  HTTP/1.1 200 OK⏎en-US Content-Type: text/xml⏎Content-Length: 2⏎⏎ok | refused | closed
  HTTP/1.1 500 Ori\xebntatieprobleem⏎Content-Length: 0⏎Connection: close⏎⏎ | 500 | closed
  HTTP/1.1 200 OK⏎Content-Type: text/plain⏎⏎hello world | 200 hello world | ended
  transfer-encoding.md
  HTTP/1.1 200 OK⏎Transfer-Encoding: chunked⏎⏎5;a;b=c⏎hello⏎6;d;e⏎ world⏎0⏎⏎ | 200 hello world | kept
  HTTP/1.1 200 OK⏎Transfer-Encoding: chunked⏎⏎5;a="I love; extensions";b;c=d⏎hello⏎0⏎⏎ | 200 hello | kept
  HTTP/1.1 200 OK⏎Transfer-Encoding: chunked⏎⏎2 erfrferferf⏎aa⏎0 rrrr⏎⏎ | refused | closed
  HTTP/1.1 200 OK⏎Transfer-Encoding: chunked⏎  abc⏎⏎5⏎World⏎0⏎⏎ | refused | closed
`;

/** Where we differ from llhttp's strict mode; behind what comes of it, what llhttp makes of it, and why we do not. */
const DISAGREED = `
  Proxy-Connection is no field of HTTP (RFC 9110 7.6.1), and no proxy is ours; llhttp closes
  HTTP/1.1 200 OK⏎Content-Length: 2⏎Proxy-Connection: close⏎⏎ok | 200 ok | kept
  An answer to no request is nobody's, and its connection carries no other; llhttp reads one after the other
  HTTP/1.0 204 No content⏎Connection: keep-alive⏎⏎HTTP/1.0 200 OK⏎⏎ | 204 | closed
  HTTP/1.1 204 No content⏎⏎HTTP/1.1 200 OK⏎⏎ | 204 | closed
  HTTP/1.1 304 Not Modified⏎Content-Length: 10⏎⏎⏎⏎HTTP/1.1 200 OK⏎Content-Length: 5⏎⏎hello | 304 | closed
  HTTP/1.1 304 Not Modified⏎Transfer-Encoding: chunked⏎⏎HTTP/1.1 200 OK⏎Transfer-Encoding: chunked⏎⏎5⏎hello⏎0⏎⏎ | 304 | closed
  HTTP/1.1 200 OK⏎Content-Length: 3⏎⏎AAAHTTP/1.1 201 Created⏎Content-Length: 4⏎⏎BBBB | 200 AAA | closed
  No request of ours allows another protocol, and what follows is no HTTP; llhttp hands it on
  HTTP/1.1 101 Switching Protocols⏎Connection: upgrade⏎Upgrade: h2c⏎Content-Length: 4⏎⏎bodyproto | refused | closed
  HTTP/1.1 101 Switching Protocols⏎Upgrade: h2c⏎Transfer-Encoding: chunked⏎⏎2⏎bo⏎2⏎dy⏎0⏎⏎proto | refused | closed
  Only HTTP/1.0 and 1.1 have the framing that is read here; llhttp takes these too
  RTSP/1.1 200 OK⏎⏎ | refused | closed
  ICE/1.1 200 OK⏎⏎ | refused | closed
  HTTP/0.9 200 OK⏎⏎ | refused | closed
  RFC 9112 2.2 has a line end passed over before a request alone: here it belongs to another body; llhttp passes over it
  ⏎HTTP/1.1 200 OK⏎Header2:␉ Value2⏎Content-Length: 0⏎⏎ | refused | closed
  The framing of an answer goes no further, so that nobody reads it in another way; llhttp refuses it
  HTTP/1.1 200 OK⏎Transfer-Encoding: chunked⏎⏎5  ⏎hello⏎0  ⏎⏎ | 200 hello | kept
  HTTP/1.1 200 OK⏎Transfer-Encoding: chunked⏎⏎2;⏎aa⏎0⏎⏎ | 200 aa | kept
  HTTP/1.1 200 OK⏎Transfer-Encoding: chunked⏎⏎5;a="abc";b="def; ghi⏎hello⏎0⏎⏎ | 200 hello | kept
  No transfer coding was asked for, and neither JSON nor an end is known of one; llhttp reads to the end of the connection
  HTTP/1.1 200 OK⏎Accept: */*⏎Transfer-Encoding: chunked, deflate⏎⏎World | refused | closed
  HTTP/1.1 200 OK⏎Transfer-Encoding: chunked⏎Transfer-Encoding: identity⏎⏎World | refused | closed
  HTTP/1.1 200 OK⏎Transfer-Encoding: chunkedchunked⏎⏎2⏎OK⏎0⏎⏎ | refused | closed
`;

/** The rows of a table below their heading. */
function rowsOf(table: string) {
  let heading = '';
  return table.split('\n').flatMap((line) => {
    const [wire = '', seen = '', after = ''] = line.replace(/^ {2}/, '').split(' | ');
    if (seen === '') heading = wire;
    return seen === '' ? [] : [[heading, wire, seen, after] as const];
  });
}

const bytesOf = (text: string) =>
  text.replaceAll('⏎', '\r\n').replaceAll('␍', '\r').replaceAll('␊', '\n').replaceAll('␉', '\t');

/** What the client makes of an answer that comes in pieces of so many bytes. */
async function seenOf(wire: string, isEnded: boolean, pieceBytes: number): Promise<string> {
  using backend = startRawBackend(async (exchange) => {
    const bytes = Buffer.from(bytesOf(wire), 'latin1');
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      await exchange.send(bytes.subarray(at, at + pieceBytes));
      await new Promise(setImmediate);
    }
    if (isEnded) exchange.end();
  });
  const client = clientOf(backend.url);
  const outcome = await client.send(REQUEST, new AbortController().signal);
  const pieces: Buffer[] = [];
  const read = (piece: Buffer) => void pieces.push(Buffer.from(piece));
  const isWhole = outcome.kind === 'reply' && (await outcome.body.pipe(read)).kind === 'complete';
  // Bytes behind the answer may come after it, and close the connection then.
  for (let turn = 0; turn < 100 && backend.open() > 0; turn++) await new Promise(setImmediate);
  const after = backend.open() > 0 ? 'kept' : isEnded ? 'ended' : 'closed';
  client.close();
  const body = Buffer.concat(pieces).toString('latin1');
  return `${isWhole ? `${outcome.head.status} ${body}`.trimEnd() : 'refused'} | ${after}`;
}

const all = [...rowsOf(AGREED), ...rowsOf(DISAGREED)];

test.each(all)('%s: %s is %s, and its connection %s', async (_, wire, seen, after) => {
  for (const pieceBytes of [1_000, 7, 1])
    expect(await seenOf(wire, after === 'ended', pieceBytes)).toBe(`${bytesOf(seen).trimEnd()} | ${after}`);
});
