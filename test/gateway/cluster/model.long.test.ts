import { expect, test } from 'bun:test';
import { answer } from '../../../gateway/cluster/authority.ts';
import { firstViolation } from './model-runs.ts';

// The eight invariants over random schedules: seconds of nothing but arithmetic, more on a machine with other work.
test('L7 L8 L9 no schedule of loads, crashes, lost disks, lost tails, clock steps and a bad network breaks an invariant', () => {
  expect(firstViolation(answer, 1_200)).toBeUndefined();
}, 180_000);
