import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { BodyDecoder } from '../../../gateway/upstream/http-parser.ts';

/** Feeds `wire` in reads that end at `cuts`; gives what came out and the state after each read. */
function decoded(wire: Buffer, cuts: readonly number[]) {
  const decoder = new BodyDecoder('chunked');
  const ends = [...cuts.map((cut) => cut % (wire.length + 1)), wire.length].toSorted((a, b) => a - b);
  const states: BodyDecoder['state'][] = [];
  let body = '';
  let from = 0;
  for (const end of ends) {
    const read = Buffer.from(wire.subarray(from, end)); // its own memory, as a socket gives it
    body += decoder.push(read).toString('latin1');
    states.push(decoder.state);
    from = end;
  }
  return { body, states };
}

const part = fc.string({
  unit: fc.constantFrom('a', '0', '\r', '\n', ';', '}'),
  minLength: 1,
  maxLength: 40,
});
const extension = fc.constantFrom('', ';x', ' ;a="b"', '\t');
const chunks = fc.array(fc.tuple(part, extension), { maxLength: 12 });
const cuts = fc.array(fc.nat(), { maxLength: 8 });

function wireOf(parts: readonly (readonly [string, string])[], trailer: string): Buffer {
  const lines = parts.map(([text, ext]) => `${text.length.toString(16)}${ext}\r\n${text}\r\n`);
  return Buffer.from(`${lines.join('')}0\r\n${trailer}\r\n`);
}

describe('a chunked body', () => {
  test('comes out whole, wherever the reads are cut', () => {
    fc.assert(
      fc.property(chunks, fc.constantFrom('', 'x-t: 1\r\n'), cuts, (parts, trailer, at) => {
        const { body, states } = decoded(wireOf(parts, trailer), at);
        expect(body).toBe(parts.map(([text]) => text).join(''));
        expect(states.at(-1)).toBe('end');
      }),
    );
  });

  test('has no end before its last byte', () => {
    fc.assert(
      fc.property(chunks, cuts, fc.nat(), (parts, at, length) => {
        const wire = wireOf(parts, '');
        const { states } = decoded(wire.subarray(0, length % wire.length), at);
        expect(states.filter((state) => /end|surplus|bad/.test(state))).toEqual([]);
      }),
    );
  });

  test('comes out up to where its framing breaks', () => {
    expect(decoded(Buffer.from('3\r\nabc\r\n2\r\nde\r\nx\r\nfg'), [])).toEqual({
      body: 'abcde',
      states: ['bad'],
    });
  });

  test('may have trailers, but not without end, in one read or in many', () => {
    const line = 'x-t: 1\r\n';
    const wire = Buffer.from(`2\r\nab\r\n0\r\n${line.repeat(513)}`);
    const reads = Array.from({ length: wire.length }, (_, i) => i);
    for (const at of [[], reads]) {
      const { body, states } = decoded(wire, at);
      expect([body, states.indexOf('bad')]).toEqual(['ab', states.length - 1]);
      expect(decoded(wire.subarray(0, -line.length), at).states).not.toContain('bad');
    }
  });

  test('may be followed by bytes that nobody asked for', () => {
    expect(decoded(Buffer.from('3\r\nabc\r\n0\r\n\r\nHTTP'), []).states).toEqual(['surplus']);
  });
});
