import { describe, expect, test } from 'bun:test';
import { createOneTimeSecrets } from '../../../deploys/console/one-time-secrets.ts';
import { CUSTOMER, OPERATOR, ORIGIN } from './started.tsx';

const MINUTE_MS = 60_000;

function start() {
  let nowMs = 1_000;
  let drawn = 0;
  const random = (bytes: number) => Buffer.from(String((drawn += 1)).padStart(bytes));
  const oneTimeSecrets = createOneTimeSecrets({ now: () => nowMs }, random);
  const take = (ticket: string, viewer = CUSTOMER, init: RequestInit = {}) => {
    const url = new URL(`${ORIGIN}/accounts/7/keys?shown=${ticket}`);
    return oneTimeSecrets.take({ url, viewer, request: new Request(url.href, init) });
  };
  return { ...oneTimeSecrets, take, pass: (ms: number) => (nowMs += ms) };
}

describe('a new secret', () => {
  test('under a ticket that its form chose is not given to another viewer with the same ticket', () => {
    const { put, take } = start();
    expect(put(CUSTOMER.userId, 'mine', 'form')).toBe('form');
    put(OPERATOR.userId, 'theirs', 'form');
    expect([take('form'), take('form', OPERATOR)]).toEqual(['mine', 'theirs']);
  });

  test.each([
    [5 * MINUTE_MS - 1, 'sluice_secret'],
    [5 * MINUTE_MS, undefined],
  ])('after %i ms is %p', (ms, shown) => {
    const { put, take, pass } = start();
    const ticket = put(CUSTOMER.userId, 'sluice_secret');
    pass(ms);
    expect(take(ticket)).toBe(shown);
  });

  test('is forgotten when a thousand newer ones wait', () => {
    const { put, take } = start();
    const [first, second] = [put(CUSTOMER.userId, 'first'), put(CUSTOMER.userId, 'second')];
    for (let i = 0; i < 999; i += 1) put(CUSTOMER.userId, `later ${i}`);
    expect([take(first), take(second)]).toEqual([undefined, 'second']);
  });
});
