import { describe, expect, test } from 'bun:test';
import { openCaller } from '../../fakes/raw-caller.ts';
import { open, statusesIn, text } from './open-listener.ts';

/*
 * What requests are taken and refused, after the cases of llhttp (its tests of requests), h1spec and Http11Probe, in our own
 * words. Where we differ from what a source asks for, the row says why.
 */

/** The body that was read of each request, and all that came back when the caller had ended its side. */
async function sent(wire: string) {
  const bodies: string[] = [];
  const { url } = open(async (request) => {
    const body = await request.readBody(1_000, 1);
    if (body.kind === 'body') bodies.push(`${request.method} ${body.bytes.toString('latin1')}`);
    return text('', 200);
  });
  using caller = await openCaller(url);
  caller.send(Buffer.from(wire, 'latin1'));
  caller.halfClose();
  await caller.ended;
  return { statuses: statusesIn(caller.text()).filter((status) => status !== 100), bodies };
}

const head = (line: string, ...fields: string[]) => `${[line, 'host: a', ...fields].join('\r\n')}\r\n\r\n`;
const get = (...fields: string[]) => head('GET / HTTP/1.1', ...fields);
const lengthOf = (value: string, body: string) => head('POST / HTTP/1.1', `content-length:${value}`) + body;
const chunked = (body: string, ...fields: string[]) =>
  head('POST / HTTP/1.1', 'transfer-encoding: chunked', ...fields) + body;
const chunk = (line: string) => chunked(`${line}\r\nhello\r\n0\r\n\r\n`);
const hostOf = (value: string) => `GET / HTTP/1.1\r\nhost:${value}\r\n\r\n`;
const codings = (...values: string[]) =>
  head('POST / HTTP/1.1', ...values.map((value) => `transfer-encoding:${value}`)) + '0\r\n\r\n';

type Row = readonly [name: string, wire: string, body?: string];

/** Each is one request, which is answered. */
const TAKEN: readonly Row[] = [
  ['a method that is known to few', head('M-SEARCH / HTTP/1.1'), 'M-SEARCH '],
  ['a method in lower case, which is another one', head('get / HTTP/1.1'), 'get '],
  ['HTTP/1.0 without a host', 'GET / HTTP/1.0\r\n\r\n', 'GET '],
  ['no fields but the host', get(), 'GET '],
  ['one line end before it', `\r\n${get()}`, 'GET '],
  [
    'names in any case, tabs and empty values',
    'GET / HTTP/1.1\r\nhoSt:\ta\t \r\nempty:\r\nblank: \r\n\r\n',
    'GET ',
  ],
  ['names of nothing but marks', get("!#$%&'*+-.^_`|~: a"), 'GET '],
  ['bytes beyond ASCII in a value', get('x: D\xc3\xbcsseldorf \xff'), 'GET '],
  ['quotes, bars and backslashes in a target', head('GET /?"a"|\\b?c=d?e HTTP/1.1'), 'GET '],
  ['a URL with a port and a query alone', head('GET http://a:1?b HTTP/1.1'), 'GET '],
  ['an address in brackets as host', hostOf(' [::1]:80'), 'GET '],
  ['an asterisk to OPTIONS', head('OPTIONS * HTTP/1.1'), 'OPTIONS '],
  ['a length with zeros, blanks and tabs around', lengthOf('\t005 ', 'hello'), 'POST hello'],
  ['a length of nothing', lengthOf('0', ''), 'POST '],
  ['neither length nor chunks', head('POST / HTTP/1.1'), 'POST '],
  ['a body of GET', head('GET / HTTP/1.1', 'content-length: 5') + 'hello', 'GET hello'],
  ['HTTP/1.0 with a body', 'POST / HTTP/1.0\r\ncontent-length: 5\r\n\r\nhello', 'POST hello'],
  [
    'chunks in either case, and zeros before and behind',
    chunked('0A\r\n0123456789\r\n00000a\r\n0123456789\r\n000\r\n\r\n'),
    'POST 01234567890123456789',
  ],
  ['extensions', chunk('5;a;b=c;d="e;f \\"g\\" \\\\";h'), 'POST hello'],
  ['blanks around the marks of an extension', chunk('5 ; a = b'), 'POST hello'],
  [
    'trailers',
    chunked('5\r\nhello\r\n0\r\nvary: *\r\ncontent-length: 9\r\ntransfer-encoding: x\r\n\r\n'),
    'POST hello',
  ],
  ['chunked in another case and with a tab before', codings('\tChunked '), 'POST '],
  [
    'an underscore for a hyphen, which is another field',
    head('POST / HTTP/1.1', 'content_length: 9', 'transfer_encoding: chunked'),
    'POST ',
  ],
  ['an unknown upgrade', get('connection: upgrade', 'upgrade: x/1'), 'GET '],
  [
    'a body that was sent without waiting for the 100',
    head('POST / HTTP/1.1', 'expect: 100-continue', 'content-length: 5') + 'hello',
    'POST hello',
  ],
];

test.each(TAKEN)('F6 %s is taken', async (_name, wire, body) => {
  expect(await sent(wire)).toEqual({ statuses: [200], bodies: [body ?? ''] });
});

/** Each is refused with 400, and all behind it with it. */
const REFUSED: readonly Row[] = [
  ['another protocol', head('GET / ICE/1.0')],
  ['another version in lower case', head('GET / http/1.1')],
  ['no minor version', head('GET / HTTP/1')],
  ['zeros in the version', head('GET / HTTP/01.01')],
  ['a blank in the version', head('GET / HTTP/ 1.1')],
  ['no version', 'GET /\r\nhost: a\r\n\r\n'],
  ['no target', head('GET HTTP/1.1')],
  ['two blanks', head('GET  / HTTP/1.1')],
  ['a tab for a blank', head('GET\t/ HTTP/1.1')],
  ['a blank in the target', head('GET /a b HTTP/1.1')],
  ['a NUL in the target', head('GET /\0 HTTP/1.1')],
  ['bytes beyond ASCII in the target', head('GET /\xce\xb4 HTTP/1.1')],
  ['an authority as target', head('CONNECT a:443 HTTP/1.1')],
  ['an asterisk to GET', head('GET * HTTP/1.1')],
  ['a user in the target', head('GET http://a%12:b!&*$@c:1/d HTTP/1.1')],
  ['a blank before the method', ` ${get()}`],
  ['a blank behind the version', head('GET / HTTP/1.1 ')],
  ['a byte in the target that some take for a blank', head('GET /\xa0 HTTP/1.1')],
  ['a fragment in a query', head('GET /?api-key=a#b HTTP/1.1')],
  ['a URL without an authority', head('GET http:///a HTTP/1.1')],
  ['another scheme', head('GET ftp://a/ HTTP/1.1')],
  ['a method that is no name', head('GE(T / HTTP/1.1')],
  ['a delete character in a value', get('x: a\x7fb')],
  ['a blank before a field', 'GET / HTTP/1.1\r\n host: a\r\n\r\n'],
  ['a line of blanks', `   \r\n\r\n`],
  ['bytes of nothing', '\xff\x00\xfe\r\n\r\n'],
  ['line feeds alone', get().replaceAll('\r\n', '\n')],
  ['a carriage return alone behind the line', get().replace('\r\n', '\r')],
  ['a carriage return and another byte', get().replace('\r\n\r\n', '\r\n\rZ: b\r\n\r\n')],
  ['a line feed in a value', get('x: a\ntransfer-encoding: chunked')],
  ['a carriage return in a value', get('x:\rtransfer-encoding: chunked')],
  ['a form feed in a value', get('x: a\fb')],
  ['bells in a value', get('x: \x07')],
  ['a NUL in a value', get('x: a\0b')],
  ['a folded line', get('x: a', ' b')],
  ['a folded coding', get('transfer-encoding: chunked', '\tx')],
  ['a blank before the colon', get('x : a')],
  ['no colon', get('x')],
  ['no name', get(': x')],
  ['a bracket in a name', get('x[: a')],
  ['an at sign in a name', get('x@: a')],
  ['a byte beyond ASCII in a name', get('x\xe9: a')],
  ['a carriage return for the hyphen of a length', head('PUT / HTTP/1.1', 'content\rlength: 3') + 'abc'],
  ['no host', 'GET / HTTP/1.1\r\n\r\n'],
  ['two hosts', get('host: a')],
  ['an empty host', hostOf(' ')],
  ['a user in the host', hostOf('u@a')],
  ['a path in the host', hostOf('a/b')],
  ['a list of hosts', hostOf('a,b')],
  ['a blank in the host', hostOf('a b')],
  ['a host beyond ASCII', hostOf('\xe9')],
  ['a port that is no number', hostOf('a:b')],
  ...[
    ' ',
    ' abc',
    ' -1',
    ' -0',
    ' +5',
    ' 0x5',
    ' 0o5',
    ' 1_0',
    ' 1 0',
    ' 5, 5',
    ' 5,10',
    ' 99999999999999999999',
    ' 0000000000000005',
    ' \x0b5',
  ].map((value): Row => [`the length${value}`, lengthOf(value, 'hello12345')]),
  ...['6', '05'].map((other): Row => [
    `a length of 5 and one of ${other}`,
    head('POST / HTTP/1.1', 'content-length: 5', `content-length: ${other}`) + 'hello1',
  ]),
  [
    'a length and chunks',
    head('POST / HTTP/1.1', 'content-length: 6', 'transfer-encoding: chunked') + '0\r\n\r\nX',
  ],
  ['chunks in HTTP/1.0', 'POST / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n'],
  ...[
    '',
    ' chunkedchunked',
    ' xchunked',
    ' chunked, gzip',
    ' chunked, chunked',
    ' chunked,',
    ' , chunked',
    ' "chunked"',
    ' \x0bchunked',
    ' identity',
    ' chunked;a=b',
    ' chunked;a, chunked',
  ].map((value): Row => [`the coding${JSON.stringify(value)}`, codings(value)]),
  ['chunked and then another coding', codings(' chunked', ' identity')],
  ...[
    '5;',
    '5 ',
    '5\t',
    '5;a="b',
    '5;a=',
    '5;a b',
    '5;a[=b',
    '5;a\0b',
    '5;a\rb',
    '5 a',
    ' 5',
    '-5',
    '+5',
    '0x5',
    '5_0',
    '',
    'x',
    'fffffffffffffffff',
  ].map((line): Row => [`the chunk ${JSON.stringify(line)}`, chunk(line)]),
  ['a chunk that ends in a carriage return alone', chunked('5\rhello\r\n0\r\n\r\n')],
  ['a chunk that ends in a line feed alone', chunked('5\nhello\r\n0\r\n\r\n')],
  ['data that ends in a line feed alone', chunked('5\r\nhello\n0\r\n\r\n')],
  ['more data than the chunk', chunked('5\r\nhello!!\r\n0\r\n\r\n')],
  ['data without its line end', chunked('5\r\nhello0\r\n\r\n')],
  ['a trailer that ends in a line feed alone', chunked('0\r\n\n')],
  ['a trailer without a name', chunked('0\r\n: a\r\n\r\n')],
];

test.each(REFUSED)('F6 %s is refused', async (_name, wire) => {
  // A request behind it must not be found, wherever a careless reader would begin.
  expect(await sent(`${wire}${get()}`)).toEqual({ statuses: [400], bodies: [] });
});

test.each<readonly [string, string, number]>([
  ['a later version', head('GET / HTTP/5.6'), 505],
  ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 505],
  ['a target of 100 KB', head(`GET /${'a'.repeat(100_000)} HTTP/1.1`), 431],
  ['a field of 100 KB', get(`x: ${'a'.repeat(100_000)}`), 431],
  ['a name of 100 KB', get(`${'a'.repeat(100_000)}: x`), 431],
  ['a method of 100 KB', head(`${'A'.repeat(100_000)} / HTTP/1.1`), 431],
  ['201 fields', get(...Array<string>(200).fill('x: a')), 431],
  ['a coding that is not known here, before chunks', codings(' deflate, chunked'), 501],
  ['the same in two fields, with a parameter', codings(' x;q="1"', ' chunked'), 501],
])('F6 %s is refused with its own status', async (_name, wire, status) => {
  expect(await sent(`${wire}${get()}`)).toEqual({ statuses: [status], bodies: [] });
});

test.each<Row>([
  ...[
    'G',
    'GET /',
    'GET / HTTP/1.1',
    'GET / HTTP/1.1\r',
    'GET / HTTP/1.1\r\nhos',
    'GET / HTTP/1.1\r\nhost: a\r\n\r',
  ].map((wire): Row => [`the beginning ${JSON.stringify(wire)}`, wire]),
  ['half a body', lengthOf('10', 'hello')],
  ['chunks without the last', chunked('5\r\nhello\r\n')],
  ['half a chunk', chunked('5\r\nhel')],
  ['half a trailer', chunked('0\r\nx: a\r\n')],
])('F6 %s is waited for, and not answered', async (_name, wire) => {
  expect(await sent(wire)).toEqual({ statuses: [], bodies: [] });
});

describe('F6 several in one write', () => {
  test('F6 are told apart, whatever frames them', async () => {
    const wire = `${lengthOf('3', 'AAA')}${chunked('4\r\nBBBB\r\n0\r\n\r\n')}\r\n${get()}${lengthOf('0', '')}`;
    expect(await sent(wire)).toEqual({
      statuses: [200, 200, 200, 200],
      bodies: ['POST AAA', 'POST BBBB', 'GET ', 'POST '],
    });
  });

  test.each<readonly [string, string]>([
    ['Connection: close', get('connection: close')],
    ['Connection: close among others', get('connection: x, close\t, keep-alive')],
    ['HTTP/1.0', 'GET / HTTP/1.0\r\n\r\n'],
  ])('F6 behind %s nothing is read', async (_name, wire) => {
    expect(await sent(`${wire}${get()}`)).toEqual({ statuses: [200], bodies: ['GET '] });
  });
});

/** What a source asks for, where we do something else, and why. */
const DIFFERENCES: readonly (readonly [
  source: string,
  asks: string,
  why: string,
  wire: string,
  statuses: readonly number[],
])[] = [
  [
    'llhttp',
    'a fragment is a part of the target',
    'no client sends one, and readers differ about what it belongs to',
    head('GET /#a HTTP/1.1'),
    [400],
  ],
  [
    'llhttp',
    'an unknown method is an error',
    'methods are open (RFC 9110 9.1): the routes refuse with 405',
    head('MKCOLA / HTTP/1.1'),
    [200],
  ],
  [
    'llhttp',
    'SOURCE, ANNOUNCE and OPTIONS may name ICE or RTSP',
    'this is a server of HTTP',
    head('SOURCE / ICE/1.0'),
    [400],
  ],
  [
    'llhttp',
    'CONNECT takes an authority, and what follows is a tunnel',
    'this is no proxy',
    head('CONNECT a:443 HTTP/1.0'),
    [400],
  ],
  [
    'llhttp',
    'any number of line ends may stand before a request',
    'one is what clients have sent (RFC 9112 2.2), and more is a way to keep a head open',
    `\r\n\r\n${get()}`,
    [400],
  ],
  ['llhttp', 'HTTP/1.1 needs no host', 'RFC 9112 3.2 wants 400', 'GET / HTTP/1.1\r\n\r\n', [400]],
  [
    'llhttp',
    'a request that asks for an upgrade ends the reading of HTTP',
    'no upgrade is offered, so what follows is a body or a request',
    `${get('connection: upgrade', 'upgrade: ws')}${get()}`,
    [200, 200],
  ],
  [
    'llhttp',
    'an asterisk is a target of any method',
    'it is one of OPTIONS alone (RFC 9112 3.2.4)',
    head('M-SEARCH * HTTP/1.1'),
    [400],
  ],
  [
    'llhttp',
    'a body without a length in a coding other than chunks ends with the connection',
    'a request cannot (RFC 9112 6.3)',
    codings(' pigeons'),
    [400],
  ],
  [
    'llhttp',
    'several codings before chunks are read',
    'none is known here (RFC 9112 6.1)',
    codings(' deflate, chunked'),
    [501],
  ],
  [
    'h1spec',
    'an expectation is met on GET',
    'without a body there is nothing to wait for',
    get('expect: 100-continue'),
    [200],
  ],
  [
    'Http11Probe',
    'an unknown Expect is 417',
    'that is a may (RFC 9110 10.1.1), and clients send odd ones',
    get('expect: 200-ok'),
    [200],
  ],
  [
    'Http11Probe',
    'a later minor version is taken as 1.1',
    'there is none, and whoever claims one speaks something else',
    head('GET / HTTP/1.2'),
    [505],
  ],
  [
    'Http11Probe',
    'another host in the target than in the field is 400',
    'neither means anything here: calls go to the configured backends',
    'GET http://b/ HTTP/1.1\r\nhost: a\r\n\r\n',
    [200],
  ],
  [
    'Http11Probe',
    'a long target is 414',
    'the head has one limit and one status',
    head(`GET /${'a'.repeat(20_000)} HTTP/1.1`),
    [431],
  ],
];

test.each(DIFFERENCES)('F6 not as %s, for which %s: %s', async (_source, _asks, _why, wire, statuses) => {
  expect((await sent(wire)).statuses).toEqual([...statuses]);
});
