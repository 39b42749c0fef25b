import { describe, expect, test } from 'bun:test';
import { answersFrom, type Outcome, outcomes } from '../../../bench/self/load.ts';
import { offer, outcomeOf } from '../../../bench/self/offer.ts';

const signal = AbortSignal.timeout(20_000);
const text = (head: string, body: string) =>
  `HTTP/1.1 ${head}\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
const error = (code: number, message: string) =>
  `{"jsonrpc":"2.0","error":{"code":${code},"message":"${message}"},"id":1}`;

describe('an answer is what its status, code, message and headers say together', () => {
  test.each<[Outcome, string, string]>([
    ['answered', '200 OK', '{"jsonrpc":"2.0","result":1,"id":1}'],
    ['over-rate', '429 x\r\nretry-after: 1', error(-429, 'Rate limit exceeded')],
    ['out-of-credits', '402 x', error(-402, 'Trial credits used up')],
    ['credits-unavailable', '503 x\r\nretry-after: 1', error(-503, 'Credit check unavailable')],
    ['key-unavailable', '503 x\r\nRetry-After: 1', error(-503, 'Key check unavailable')],
    ['no-backend', '503 x\r\nretry-after: 1', error(-503, 'No backend available')],
    ['strange', '200 OK', error(-429, 'Rate limit exceeded')],
    ['strange', '429 x', error(-429, 'Rate limit exceeded')],
    ['strange', '429 x\r\nretry-after: 0', error(-429, 'Rate limit exceeded')],
    ['strange', '429 x\r\nretry-after: 1', error(-402, 'Trial credits used up')],
    ['strange', '402 x\r\nretry-after: 1', error(-402, 'Trial credits used up')],
    ['strange', '503 x\r\nretry-after: 1', error(-503, 'Rate limit exceeded')],
    ['strange', '500 x', error(-500, 'x')],
  ])('%s: %s %s', (outcome, head, body) => expect(outcomeOf(text(head, body))).toBe(outcome));
});

describe('a load', () => {
  /** What comes of a load on a server that does this with each request. */
  async function loaded(data: (socket: Bun.Socket, bytes: Buffer) => void) {
    using server = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data } });
    const url = `http://127.0.0.1:${server.port}/`;
    const bodies = ['{"a":1}', '{"b":1}'];
    return answersFrom(
      await offer({ url, key: 'k', bodies, perSecond: 100, connections: 4, seconds: 1 }, signal),
    );
  }

  test('sends its bodies in turn on few connections, never more than the rate, and notes each answer', async () => {
    const bodies: string[] = [];
    const seen = new Set<unknown>();
    const answers = await loaded((socket, bytes) => {
      const [head = '', body = ''] = bytes.toString('latin1').split('\r\n\r\n');
      expect(head).toContain('x-token: k');
      bodies.push(body);
      seen.add(socket);
      socket.write(text('200 OK', '{"result":1}'));
    });
    expect(answers.length).toBeWithin(11, 101);
    expect(outcomes(answers)).toEqual({ answered: answers.length });
    expect(bodies.filter((body) => body === '{"a":1}')).toHaveLength(Math.ceil(answers.length / 2));
    expect(bodies.filter((body) => body === '{"b":1}')).toHaveLength(Math.floor(answers.length / 2));
    expect(answers.slice(0, 3).map(({ body }) => body)).toEqual([0, 1, 0]);
    expect(seen.size).toBe(4);
  });

  test('notes what a closed connection takes with it, and goes on with another', async () => {
    let requests = 0;
    const answers = await loaded((socket) => {
      if (++requests % 2 === 0) socket.terminate();
      else socket.write(text('200 OK', '{"result":1}'));
    });
    expect(outcomes(answers).lost).toBe(Math.floor(requests / 2));
    expect(outcomes(answers).answered).toBe(Math.ceil(requests / 2));
  });
});
