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

const FAULTS: readonly (readonly [string, string, Fault])[] = [
  [
    'spent tokens are added instead of merged',
    'at rest',
    {
      file: 'authority-rate',
      from: 'const spent = Math.max(reported, same?.spent ?? 0);',
      to: 'const spent = reported + (same?.spent ?? 0);',
    },
  ],
  [
    'a late rate message is taken for a new one',
    'I',
    {
      file: 'authority-rate',
      from: 'if (known !== undefined && !isNewer(sender, known)) {',
      to: 'if (false) {',
    },
  ],
  [
    'a late surplus of a rate goes back again',
    'I4',
    {
      file: 'authority-rate',
      from: '!isNewer(sender, known)',
      to: '!(sender.fence >= known.fence)',
    },
  ],
  [
    'the fence of a rate is dropped',
    'I1',
    {
      file: 'authority-rate',
      from: 'const same = known?.fence === fence ? known : undefined;',
      to: 'const same = known;',
    },
  ],
  [
    'the bucket refills beside what is outstanding',
    'I1',
    {
      file: 'authority-rate',
      from: 'const cap = (state.burst - outstanding(state, aliveMs)) * MICRO;',
      to: 'const cap = state.burst * MICRO;',
    },
  ],
  [
    'what a lease held comes back when it ends',
    'I1',
    {
      file: 'authority-rate',
      from: '  state.atMs = nowMs;',
      to: `for (const h of state.nodes) if (heldBy(h, sinceMs) > heldBy(h, clockMs)) state.micro += heldBy(h, sinceMs) * MICRO;
  state.atMs = nowMs;`,
    },
  ],
  [
    'a debt is forgiven',
    'I1',
    {
      file: 'authority-rate',
      from: 'const paid = state.micro - debt * MICRO;',
      to: 'const paid = state.micro;',
    },
  ],
  [
    'a bucket is dropped before it is full',
    'I6',
    { file: 'authority-rate', from: '+ 2 * RATE_LIFE_MS + 60_000', to: '/ 1_000' },
  ],
  [
    'charges are added instead of merged',
    'I',
    {
      file: 'authority-credits',
      from: 'known.charged = Math.max(known.charged, charged);',
      to: 'known.charged += charged;',
    },
  ],
  [
    'the last word on charges counts, not the highest',
    'I',
    {
      file: 'authority-credits',
      from: 'known.charged = Math.max(known.charged, charged);',
      to: 'known.charged = charged;',
    },
  ],
  [
    'refunds are not counted',
    'I',
    {
      file: 'authority-credits',
      from: 'known.refunded = Math.max(known.refunded, refunded);',
      to: '',
    },
  ],
  [
    'a late credit message is taken for a new one',
    'I',
    {
      file: 'authority-credits',
      from: 'known === undefined || isNewer(sender, known)',
      to: 'true',
    },
  ],
  [
    'the fence of credits is dropped',
    'I5',
    {
      file: 'authority-credits',
      from: 'isNewer(sender, known)',
      to: 'sender.seq > known.seq',
    },
  ],
  [
    'a grant is added instead of brought up to what is wanted',
    'I',
    {
      file: 'authority-credits',
      from: ': Math.max(wanted, needed);',
      to: ': held + wanted + needed;',
    },
  ],
  [
    'a dead node is written off at once',
    'I2',
    {
      file: 'authority-credits',
      from: 'CREDIT_RELEASE_MS = 24 * 3_600_000',
      to: 'CREDIT_RELEASE_MS = 2_000',
    },
  ],
  [
    'nothing is learned after grants were lost',
    'I2',
    {
      file: 'authority-credits',
      from: 'move(state, mine, report, learning);',
      to: 'move(state, mine, report, false);',
    },
  ],
  [
    'more is taken back than was offered',
    'I2',
    {
      file: 'authority-credits',
      from: ': Math.max(wanted, needed);',
      to: ': isRecalled(state, mine) ? needed : Math.max(wanted, needed);',
    },
  ],
  [
    'a node of which nothing is known starts with a lease',
    'I',
    {
      file: 'authority-credits',
      from: '{ granted: charged, returned',
      to: '{ granted: charged + 50, returned',
    },
  ],
];

describe('a planted fault is found', () => {
  test.each(FAULTS)('%s (%s)', async (_, invariant, fault) => {
    const found = firstViolation(await authorityWith(fault, folder), RUNS);
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
