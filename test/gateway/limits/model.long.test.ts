import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { firstViolation } from './model-runs.ts';
import { answer } from '../../../gateway/limits/authority.ts';
import { authorityWith } from './mutant.ts';
import type { Authority } from './world.ts';

// The eight invariants over random schedules, and faults planted in the arithmetic that they must find.

const folder = mkdtempSync(join(tmpdir(), 'sluice-'));
afterAll(() => rmSync(folder, { recursive: true }));

const RUNS = 800;

// Seconds of nothing but arithmetic: on a machine with other work it takes as many times longer.
setDefaultTimeout(60_000);

test('no schedule of loads, crashes, lost disks, lost tails, clock steps and a bad network breaks an invariant', () => {
  expect(firstViolation(answer, 400)).toBeUndefined();
});

/** What is planted, the invariant that it breaks, what stands in the source, and what replaces it. */
const FAULTS: readonly (readonly [string, string, string, string])[] = [
  [
    'spent tokens are added instead of merged',
    'at rest',
    'isSame ? Math.max(reported, mine.spent) : reported;',
    'reported + mine.spent;',
  ],
  [
    'a late surplus of a rate goes back again',
    'I4',
    'if (!isNewer(sender, mine)) {',
    'if (!(sender.fence >= mine.fence)) {',
  ],
  [
    'the fence of a rate is dropped',
    'I1',
    'const isSame = mine.fence === fence && !isUnknown;',
    'const isSame = !isUnknown;',
  ],
  [
    'the bucket refills beside what is outstanding',
    'I1',
    'const cap = (state.burst - outstanding(state, aliveMs)) * MICRO;',
    'const cap = state.burst * MICRO;',
  ],
  [
    'what a lease held comes back when it ends',
    'I1',
    '  state.clockMs = clockMs;',
    `for (const h of state.nodes) if (heldBy(h, sinceMs) > heldBy(h, clockMs)) state.micro += heldBy(h, sinceMs) * MICRO;
  state.clockMs = clockMs;`,
  ],
  ['a debt is forgiven', 'I1', 'const paid = state.micro - debt * MICRO;', 'const paid = state.micro;'],
  ['a bucket is dropped before it is full', 'I6', '+ 2 * RATE_LIFE_MS + 60_000', '/ 1_000'],
  [
    'charges are added instead of merged',
    'I',
    'mine.charged = Math.max(mine.charged, charged);',
    'mine.charged += charged;',
  ],
  [
    'the last word on charges counts, not the highest',
    'I',
    'mine.charged = Math.max(mine.charged, charged);',
    'mine.charged = charged;',
  ],
  ['refunds are not counted', 'I', 'mine.refunded = Math.max(mine.refunded, refunded);', ''],
  ['a late credit message is taken for a new one', 'I', 'isNews = isNewer(sender, mine)', 'isNews = true'],
  [
    'the fence of credits is dropped',
    'I5',
    'isNews = isNewer(sender, mine)',
    'isNews = sender.seq > mine.seq',
  ],
  [
    'a grant is added instead of brought up to what is wanted',
    'I',
    ': Math.max(wanted, needed);',
    ': held + wanted + needed;',
  ],
  [
    'a dead node is written off at once',
    'I2',
    'CREDIT_RELEASE_MS = 24 * 3_600_000',
    'CREDIT_RELEASE_MS = 2_000',
  ],
  [
    'nothing is learned after grants were lost',
    'I2',
    'move(state, mine, report, learning);',
    'move(state, mine, report, false);',
  ],
  [
    'more is taken back than was offered',
    'I2',
    ': Math.max(wanted, needed);',
    ': isRecalled(state, mine) ? needed : Math.max(wanted, needed);',
  ],
  [
    'a node of which nothing is known starts with a lease',
    'I',
    '{ granted: charged, returned',
    '{ granted: charged + 50, returned',
  ],
];

describe('a planted fault is found', () => {
  test.each(FAULTS)('%s (%s)', async (_, invariant, from, to) => {
    const found = firstViolation(await authorityWith(from, to, folder), RUNS);
    expect(found).toStartWith(invariant);
  });

  test("the sender's clock instead of the store's", () => {
    const skewed: Authority = (before, by, message, moment) => {
      const nowMs = moment.nowMs + (by.node.charCodeAt(1) % 4) * 700;
      return answer(before, by, message, message.rate === undefined ? moment : { ...moment, nowMs });
    };
    expect(firstViolation(skewed, RUNS)).toStartWith('I');
  });

  test('a refund that lowers what was charged', () => {
    const lowering: Authority = (before, by, message, moment) => {
      const { credits } = message;
      if (credits === undefined) return answer(before, by, message, moment);
      const lower = { ...credits, charged: credits.charged - credits.refunded, refunded: 0 };
      return answer(before, by, { ...message, credits: lower }, moment);
    };
    expect(firstViolation(lowering, RUNS)).toStartWith('I5');
  });
});
