import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { firstViolation } from './model-runs.ts';
import { centreWith, type Fault } from './mutant.ts';
import { type Centre, CENTRE } from './world.ts';

// The eight invariants of limits.md 5 over random schedules, and faults planted in the centre that they must find.

const folder = mkdtempSync(join(tmpdir(), 'sluice-'));
afterAll(() => rmSync(folder, { recursive: true }));

const RUNS = 800;

// Seconds of nothing but arithmetic: on a machine with other work it takes as many times longer.
setDefaultTimeout(60_000);

test('no schedule of loads, crashes, lost disks, lost tails, clock steps and a bad network breaks an invariant', () => {
  expect(firstViolation(CENTRE, 400)).toBeUndefined();
});

const FAULTS: readonly (readonly [string, string, Fault])[] = [
  [
    'spent tokens are added instead of merged',
    'at rest',
    {
      file: 'centre-rate',
      from: 'const spent = Math.max(said, same ? known.spent : 0);',
      to: 'const spent = said + (same ? known.spent : 0);',
    },
  ],
  [
    'a late rate message is taken for a new one',
    'I',
    {
      file: 'centre-rate',
      from: 'if (known !== undefined && !isNewer(speaker, known)) {',
      to: 'if (false) {',
    },
  ],
  [
    'a late surplus of a rate goes back again',
    'I4',
    {
      file: 'centre-rate',
      from: 'fence > than.fence || (fence === than.fence && seq > than.seq)',
      to: 'fence >= than.fence',
    },
  ],
  [
    'the fence of a rate is dropped',
    'I1',
    {
      file: 'centre-rate',
      from: 'const same = known !== undefined && known.fence === fence;',
      to: 'const same = known !== undefined;',
    },
  ],
  [
    'the bucket refills beside what is outstanding',
    'I1',
    {
      file: 'centre-rate',
      from: 'const cap = (burst - outstanding(state, aliveMs)) * MICRO;',
      to: 'const cap = burst * MICRO;',
    },
  ],
  [
    'what a lease held comes back when it ends',
    'I1',
    {
      file: 'centre-rate',
      from: 'const [reserved, reservedMs] = state.reservedMs',
      to: `let back = 0; for (const h of state.nodes.values()) if (heldBy(h, sinceMs) > heldBy(h, clockMs)) back += heldBy(h, sinceMs) * MICRO;
  if (back > 0) return { ...state, micro: micro + back, atMs: nowMs, clockMs, nodes };
  const [reserved, reservedMs] = state.reservedMs`,
    },
  ],
  [
    'a debt is forgiven',
    'I1',
    {
      file: 'centre-rate',
      from: 'const paid = state.micro - debt * MICRO;',
      to: 'const paid = state.micro;',
    },
  ],
  [
    'a bucket is dropped before it is full',
    'I6',
    { file: 'centre-rate', from: '+ 2 * RATE_LIFE_MS + 60_000', to: '/ 1_000' },
  ],
  [
    'charges are added instead of merged',
    'I',
    {
      file: 'centre-credit',
      from: 'const charged = Math.max(known.charged, ask.charged);',
      to: 'const charged = known.charged + ask.charged;',
    },
  ],
  [
    'the last word on charges counts, not the highest',
    'I',
    {
      file: 'centre-credit',
      from: 'const charged = Math.max(known.charged, ask.charged);',
      to: 'const charged = ask.charged;',
    },
  ],
  [
    'refunds are not counted',
    'I',
    {
      file: 'centre-credit',
      from: 'const refunded = Math.max(known.refunded, ask.refunded);',
      to: 'const refunded = 0;',
    },
  ],
  [
    'a late credit message is taken for a new one',
    'I',
    {
      file: 'centre-credit',
      from: 'if (known !== undefined && !isNewer(speaker, known)) {',
      to: 'if (false) {',
    },
  ],
  [
    'the fence of credits is dropped',
    'I5',
    {
      file: 'centre-credit',
      from: 'fence > than.fence || (fence === than.fence && seq > than.seq)',
      to: 'seq > than.seq',
    },
  ],
  [
    'a grant is added instead of brought up to what is wanted',
    'I',
    {
      file: 'centre-credit',
      from: ': Math.max(wanted, needed);',
      to: ': held + wanted + needed;',
    },
  ],
  [
    'a dead node is written off at once',
    'I2',
    { file: 'centre-credit', from: 'CREDIT_RELEASE_MS = 24 * 3_600_000', to: 'CREDIT_RELEASE_MS = 2_000' },
  ],
  [
    'nothing is learned after grants were lost',
    'I2',
    {
      file: 'centre-credit',
      from: '  learning: boolean,\n): CreditHolding {',
      to: '  _: boolean,\n): CreditHolding { const learning = false;',
    },
  ],
  [
    'more is taken back than was offered',
    'I2',
    {
      file: 'centre-credit',
      from: ': Math.max(wanted, needed);',
      to: ': isRecalled(state, node) ? needed : Math.max(wanted, needed);',
    },
  ],
  [
    'a node of which nothing is known starts with a lease',
    'I',
    { file: 'centre-credit', from: 'return { granted: charged,', to: 'return { granted: charged + 50,' },
  ],
];

describe('a planted fault is found', () => {
  test.each(FAULTS)('%s (%s)', async (_, invariant, fault) => {
    const found = firstViolation(await centreWith(fault, folder), RUNS);
    expect(found).toStartWith(invariant);
  });

  test("the caller's clock instead of the centre's", () => {
    const skewed: Centre = {
      ...CENTRE,
      topUpRate: (before, by, ask, nowMs) =>
        CENTRE.topUpRate(before, by, ask, nowMs + (by.node.charCodeAt(1) % 4) * 700),
    };
    expect(firstViolation(skewed, RUNS)).toStartWith('I');
  });

  test('a refund that lowers what was charged', () => {
    const lowering: Centre = {
      ...CENTRE,
      topUpCredits: (before, by, { charged, refunded, ...ask }, nowMs, learning) =>
        CENTRE.topUpCredits(
          before,
          by,
          { ...ask, charged: charged - refunded, refunded: 0 },
          nowMs,
          learning,
        ),
    };
    expect(firstViolation(lowering, RUNS)).toStartWith('I5');
  });
});
