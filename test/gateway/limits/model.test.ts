import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { firstViolation } from './model-runs.ts';
import { answer } from '../../../gateway/limits/authority.ts';
import { authorityWith, type Fault } from './mutant.ts';
import type { Authority } from './world.ts';

// The eight invariants of limits.md 5 over random schedules, and faults planted in the arithmetic that they must find.

const folder = mkdtempSync(join(tmpdir(), 'sluice-'));
afterAll(() => rmSync(folder, { recursive: true }));

const RUNS = 800;

// Seconds of nothing but arithmetic: on a machine with other work it takes as many times longer.
setDefaultTimeout(60_000);

test('no schedule of loads, crashes, lost disks, lost tails, clock steps and a bad network breaks an invariant', () => {
  expect(firstViolation(answer, 400)).toBeUndefined();
});

/** What is planted, the invariant that it breaks, the file, what stands there, and what replaces it. */
const FAULTS: readonly (readonly [string, string, Fault['file'], string, string])[] = [
  [
    'spent tokens are added instead of merged',
    'at rest',
    'authority-rate',
    'isSame ? Math.max(reported, mine.spent) : reported;',
    'reported + mine.spent;',
  ],
  [
    'a late surplus of a rate goes back again',
    'I4',
    'authority-rate',
    '!isNewer(sender, mine)',
    '!(sender.fence >= mine.fence)',
  ],
  [
    'the fence of a rate is dropped',
    'I1',
    'authority-rate',
    'const isSame = mine.fence === fence && !isUnknown;',
    'const isSame = !isUnknown;',
  ],
  [
    'the bucket refills beside what is outstanding',
    'I1',
    'authority-rate',
    'const cap = (state.burst - outstanding(state, aliveMs)) * MICRO;',
    'const cap = state.burst * MICRO;',
  ],
  [
    'what a lease held comes back when it ends',
    'I1',
    'authority-rate',
    '  state.atMs = nowMs;',
    `for (const h of state.nodes) if (heldBy(h, sinceMs) > heldBy(h, clockMs)) state.micro += heldBy(h, sinceMs) * MICRO;
  state.atMs = nowMs;`,
  ],
  [
    'a debt is forgiven',
    'I1',
    'authority-rate',
    'const paid = state.micro - debt * MICRO;',
    'const paid = state.micro;',
  ],
  ['a bucket is dropped before it is full', 'I6', 'authority-rate', '+ 2 * RATE_LIFE_MS + 60_000', '/ 1_000'],
  [
    'charges are added instead of merged',
    'I',
    'authority-credits',
    'mine.charged = Math.max(mine.charged, charged);',
    'mine.charged += charged;',
  ],
  [
    'the last word on charges counts, not the highest',
    'I',
    'authority-credits',
    'mine.charged = Math.max(mine.charged, charged);',
    'mine.charged = charged;',
  ],
  [
    'refunds are not counted',
    'I',
    'authority-credits',
    'mine.refunded = Math.max(mine.refunded, refunded);',
    '',
  ],
  ['a late credit message is taken for a new one', 'I', 'authority-credits', 'isNewer(sender, mine)', 'true'],
  [
    'the fence of credits is dropped',
    'I5',
    'authority-credits',
    'isNewer(sender, mine)',
    'sender.seq > mine.seq',
  ],
  [
    'a grant is added instead of brought up to what is wanted',
    'I',
    'authority-credits',
    ': Math.max(wanted, needed);',
    ': held + wanted + needed;',
  ],
  [
    'a dead node is written off at once',
    'I2',
    'authority-credits',
    'CREDIT_RELEASE_MS = 24 * 3_600_000',
    'CREDIT_RELEASE_MS = 2_000',
  ],
  [
    'nothing is learned after grants were lost',
    'I2',
    'authority-credits',
    'move(state, mine, report, learning);',
    'move(state, mine, report, false);',
  ],
  [
    'more is taken back than was offered',
    'I2',
    'authority-credits',
    ': Math.max(wanted, needed);',
    ': isRecalled(state, mine) ? needed : Math.max(wanted, needed);',
  ],
  [
    'a node of which nothing is known starts with a lease',
    'I',
    'authority-credits',
    '{ granted: charged, returned',
    '{ granted: charged + 50, returned',
  ],
];

describe('a planted fault is found', () => {
  test.each(FAULTS)('%s (%s)', async (_, invariant, file, from, to) => {
    const found = firstViolation(await authorityWith({ file, from, to }, folder), RUNS);
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
