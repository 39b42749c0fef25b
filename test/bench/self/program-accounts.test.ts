import { describe, expect, test } from 'bun:test';
import { bodyBytes, programAccounts } from '../../../bench/self/program-accounts.ts';

const wire = (bytesMin: number, framing: 'length' | 'chunked') => {
  const text = Buffer.concat([...programAccounts(bytesMin, '"seven"', framing)]).toString('latin1');
  const end = text.indexOf('\r\n\r\n');
  return { head: text.slice(0, end), body: text.slice(end + 4) };
};

/** The body inside chunks, read by their own sizes. */
function unchunked(text: string): string {
  let body = '';
  for (let at = 0; ;) {
    const line = text.indexOf('\r\n', at);
    const size = Number.parseInt(text.slice(at, line), 16);
    if (size === 0) return text.slice(line) === '\r\n\r\n' ? body : 'bytes after the last chunk';
    body += text.slice(line + 2, line + 2 + size);
    at = line + 4 + size;
  }
}

describe("the bench's getProgramAccounts answer", () => {
  test.each([1, 2_500_000])('of %p bytes is JSON of token accounts with the id of its call', (bytesMin) => {
    const { body } = wire(bytesMin, 'length');
    expect(body.length).toBeGreaterThanOrEqual(bytesMin);
    const { result, id } = JSON.parse(body);
    expect(id).toBe('seven');
    for (const { pubkey, account } of [result[0], result.at(-1)]) {
      expect(pubkey).toMatch(/^[1-9A-HJ-NP-Za-km-z]{43,44}$/);
      expect(Buffer.from(account.data[0], 'base64')).toHaveLength(165);
    }
  });

  test('has the Content-Length that it has', () => {
    const { head, body } = wire(1, 'length');
    expect(head).toContain(`content-length: ${body.length}`);
    expect(bodyBytes(1, '"seven"')).toBe(body.length);
  });

  test('is the same bytes in chunks, ended by the last one', () => {
    const { head, body } = wire(2_500_000, 'chunked');
    expect(head).toEndWith('transfer-encoding: chunked');
    expect(unchunked(body)).toBe(wire(2_500_000, 'length').body);
  });
});
