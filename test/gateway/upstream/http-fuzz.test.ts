import { expect, test } from 'bun:test';
import { checkSmallReplies, fuzz } from '../../../bench/self/http-fuzz.ts';
import { randomOf } from '../../../bench/self/http-replies.ts';

const SECONDS = 3;

test('whatever a backend sends, split wherever, a reply is its own, whole, cut or none, as RFC 9112 has it', async () => {
  const { outcomes, finding } = await fuzz(1, SECONDS);
  expect(finding).toBeUndefined();
  for (const name of ['complete', 'cut', 'no answer']) expect(outcomes.get(name)).toBeGreaterThan(0);
}, 60_000);

test('the short way of a small reply accepts what the long way reads alike', () => {
  const counts = new Map<string, number>();
  const count = (name: string) => void counts.set(name, (counts.get(name) ?? 0) + 1);
  for (let seed = 1; seed <= 200; seed++) checkSmallReplies(randomOf(seed), count);
  expect([...counts.values()][0]).toBeGreaterThan(100);
});
