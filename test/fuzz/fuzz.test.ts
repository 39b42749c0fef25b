import { expect, test } from 'bun:test';
import * as calls from './calls.ts';
import * as http from './http.ts';
import * as listener from './listener.ts';

const SECONDS = 2;
const TIMEOUT_MS = 60_000;

/** That nothing was found, and that each of these came up. How long turns take is for runs on a quiet machine (`main.ts`). */
function expectClean(
  { counts, finding }: Awaited<ReturnType<typeof http.fuzz>>,
  names: readonly string[],
): void {
  expect(finding).toBeUndefined();
  expect(names.filter((name) => (counts.get(name) ?? 0) === 0)).toEqual([]);
}

test(
  'whatever a backend sends, split wherever, a reply is its own, whole, cut or none, as RFC 9112 has it',
  async () => expectClean(await http.fuzz(1, SECONDS), ['complete', 'cut', 'no answer', 'small']),
  TIMEOUT_MS,
);

test(
  'F18 whatever callers send, split wherever, a request that is well-formed gets its own answer',
  async () => expectClean(await listener.fuzz(1, SECONDS), ['200', '401', 'reset']),
  TIMEOUT_MS,
);

test(
  'F19 bodies are what JSON.parse makes of them, at once and in slices',
  async () => expectClean(await calls.fuzz(['envelope'], 1, SECONDS), ['JSON', 'no JSON']),
  TIMEOUT_MS,
);

test(
  'B13 whatever ids callers choose, each gets its own answer and no other, no honest backend is marked, and usage and journal agree',
  async () => {
    const seen = ['own', 'invalid', 'lines', 'charged', 'faulty own', 'faulty refused', 'faulty cut'];
    expectClean(await calls.fuzz(['ids', 'faulty'], 1, SECONDS), seen);
  },
  TIMEOUT_MS,
);
