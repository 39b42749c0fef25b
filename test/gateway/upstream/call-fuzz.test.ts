import { expect, test } from 'bun:test';
import { fuzz } from '../../../bench/self/call-fuzz.ts';

const SECONDS = 2;

test('F19 bodies are what JSON.parse makes of them, at once and in slices', async () => {
  const { counts, finding } = await fuzz(['envelope'], 1, SECONDS);
  expect(finding).toBeUndefined();
  for (const name of ['JSON', 'no JSON']) expect(counts.get(name)).toBeGreaterThan(0);
}, 60_000);

test('B13 whatever ids callers choose, each gets its own answer and no other, no honest backend is marked, and usage and journal agree', async () => {
  const { counts, finding } = await fuzz(['ids', 'faulty'], 1, SECONDS);
  expect(finding).toBeUndefined();
  for (const name of ['own', 'invalid', 'lines', 'charged', 'faulty own', 'faulty refused', 'faulty cut'])
    expect(counts.get(name)).toBeGreaterThan(0);
}, 60_000);
