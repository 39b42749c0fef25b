/** How the end of a body is told (RFC 9112 6.3). */
export type Framing =
  | { readonly kind: 'length'; readonly bytes: number }
  | { readonly kind: 'chunked' }
  /** The end of the connection is the end of the body; a cut looks the same. */
  | { readonly kind: 'until-close' };

/** A response's head. Header names are lower-case; a header that came twice is joined with ", ". */
export type ResponseHead = Readonly<{
  status: number;
  headers: ReadonlyMap<string, string>;
  framing: Framing;
  /** Whether the connection may carry another request after this body. */
  reusable: boolean;
}>;

export type HeadRead =
  | { readonly kind: 'head'; readonly head: ResponseHead; readonly end: number }
  /** The head under way begins at `from`: the interim ones before it are done with. */
  | { readonly kind: 'more'; readonly from: number }
  | { readonly kind: 'bad'; readonly reason: string };

/** A head longer than this is refused, and so are interim heads that are longer together. */
export const HEAD_BYTES_MAX = 32_768;

const END_OF_HEAD = Buffer.from('\r\n\r\n');

/**
 * Reads a head from the start of `bytes`; interim (1xx) heads are passed over, `passedBytes` of them before. `end` is the
 * index of the body's first byte.
 */
export function readHead(bytes: Buffer, passedBytes = 0): HeadRead {
  let from = 0;
  for (;;) {
    const at = bytes.indexOf(END_OF_HEAD, from);
    if ((at === -1 ? bytes.length : at) - from > HEAD_BYTES_MAX) return bad('its head is too long');
    if (at === -1) return { kind: 'more', from };
    const read = parsed(bytes.toString('latin1', from, at), at + END_OF_HEAD.length);
    if (read.kind !== 'head' || read.head.status >= 200) return read;
    from = read.end;
    if (passedBytes + from > HEAD_BYTES_MAX) return bad('its interim heads do not end');
  }
}

function parsed(text: string, end: number): Exclude<HeadRead, { kind: 'more' }> {
  const lines = text.split('\r\n');
  const [, minor, digits] = /^HTTP\/1\.([01]) (\d{3})(?: |$)/.exec(lines[0] ?? '') ?? [];
  if (digits === undefined) return bad('its status line is not HTTP/1');
  const headers = new Map<string, string>();
  for (const line of lines.slice(1)) {
    const colon = line.indexOf(':');
    const name = line.slice(0, colon).toLowerCase();
    // No space before the colon and no folded lines: two readers could differ about them (RFC 9112 5.1, 5.2).
    if (colon < 1 || !/^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(name)) return bad('a header line is malformed');
    const value = line.slice(colon + 1).trim();
    const before = headers.get(name);
    headers.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  const status = Number(digits);
  const framing = framingOf(status, headers);
  if (framing === undefined) return bad('its length is ambiguous');
  const reusable =
    framing.kind !== 'until-close' && keepsAlive(minor === '1', headers.get('connection') ?? '');
  return { kind: 'head', head: { status, headers, framing, reusable }, end };
}

function framingOf(status: number, headers: ReadonlyMap<string, string>): Framing | undefined {
  const [encoding, length] = [headers.get('transfer-encoding'), headers.get('content-length')];
  if (status === 204 || status === 304 || status < 200) return { kind: 'length', bytes: 0 };
  if (encoding !== undefined) {
    return length === undefined && /^chunked$/i.test(encoding) ? { kind: 'chunked' } : undefined;
  }
  if (length === undefined) return { kind: 'until-close' };
  const [first, ...others] = length.split(', ');
  if (first === undefined || !/^\d{1,15}$/.test(first) || others.some((other) => other !== first))
    return undefined;
  return { kind: 'length', bytes: Number(first) };
}

function keepsAlive(isHttp11: boolean, connection: string): boolean {
  const options = connection.toLowerCase().split(/\s*,\s*/);
  return isHttp11 ? !options.includes('close') : options.includes('keep-alive');
}

function bad(reason: string): Extract<HeadRead, { kind: 'bad' }> {
  return { kind: 'bad', reason };
}
