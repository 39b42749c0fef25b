import { expect, test } from 'bun:test';
import { fuzz } from '../../../bench/self/http-fuzz.ts';

const SECONDS = 3;

test('whatever a backend sends, split wherever, a reply is its own, whole, cut or none, as RFC 9112 has it', async () => {
  const { counts, finding } = await fuzz(1, SECONDS);
  expect(finding).toBeUndefined();
  for (const name of ['complete', 'cut', 'no answer', 'small']) expect(counts.get(name)).toBeGreaterThan(0);
}, 60_000);
