import { expect, test } from 'bun:test';
import { fuzz } from '../../../bench/self/listener-fuzz.ts';

const SECONDS = 3;

test('F18 whatever callers send, split wherever, a request that is well-formed gets its own answer, and no turn is held up', async () => {
  const { counts, finding } = await fuzz(1, SECONDS);
  expect(finding).toBeUndefined();
  for (const name of ['200', '401', 'reset']) expect(counts.get(name)).toBeGreaterThan(0);
}, 60_000);
