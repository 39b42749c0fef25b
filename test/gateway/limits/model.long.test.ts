import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { temporaryFolder } from '../../started/gateway.ts';
import { firstViolation } from './model-runs.ts';
import { answer } from '../../../gateway/limits/authority.ts';
import { authorityWith, faultsIn } from './mutant.ts';

// The eight invariants over random schedules, and faults planted in the arithmetic that they must find.

const folder = temporaryFolder();
afterAll(() => folder[Symbol.dispose]());

const RUNS = 800;

// Seconds of nothing but arithmetic: on a machine with other work it takes as many times longer.
setDefaultTimeout(60_000);

test('no schedule of loads, crashes, lost disks, lost tails, clock steps and a bad network breaks an invariant', () => {
  expect(firstViolation(answer, 400)).toBeUndefined();
});

/** The invariant that a fault breaks: what is planted. */
const FAULTS = `
at rest: spent tokens are added instead of merged | isSame ? Math.max(reported, mine.spent) : reported; -> reported + mine.spent;
I4: a late surplus of a rate goes back again | if (!isNewer(sender, mine)) { -> if (!(sender.fence >= mine.fence)) {
I1: the fence of a rate is dropped | const isSame = mine.fence === fence && !isUnknown; -> const isSame = !isUnknown;
I1: the bucket refills beside what is outstanding | (state.burst - outstanding(state, aliveMs)) * MICRO; -> state.burst * MICRO;
I1: a debt is forgiven | const paid = state.micro - debt * MICRO; -> const paid = state.micro;
I6: a bucket is dropped before it is full | + 2 * RATE_LIFE_MS + 60_000 -> / 1_000
I: refunds are not counted | mine.refunded = Math.max(mine.refunded, refunded); -> ;
I: a late credit message is taken for a new one | isNews = isNewer(sender, mine) -> isNews = true
I5: the fence of credits is dropped | isNews = isNewer(sender, mine) -> isNews = sender.seq > mine.seq
I2: a dead node is written off at once | CREDIT_RELEASE_MS = 24 * 3_600_000 -> CREDIT_RELEASE_MS = 2_000
I2: nothing is learned after grants were lost | move(state, mine, report, learning); -> move(state, mine, report, false);
`;

describe('a planted fault is found', () => {
  test.each(faultsIn(FAULTS))('%s', async (name, from, to) => {
    const found = firstViolation(await authorityWith(from, to, folder.path), RUNS);
    expect(found).toStartWith(name.split(':', 1).join());
  });
});
