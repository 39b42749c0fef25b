import { expect, test } from 'bun:test';
import { RetryBudget } from '../../../gateway/upstream/selection.ts';

function taken(budget: RetryBudget): number {
  let count = 0;
  while (budget.take()) count++;
  return count;
}

test('a quiet pool has two hundred retries, enough for the calls that a dying node takes along', () => {
  expect(taken(new RetryBudget())).toBe(200);
});

test('in an outage of all there is one retry for each ten calls', () => {
  const budget = new RetryBudget();
  taken(budget);
  let retries = 0;
  for (let call = 0; call < 10_000; call++) {
    budget.deposit();
    if (budget.take()) retries++;
  }
  expect(Math.abs(retries - 1_000)).toBeLessThanOrEqual(1);
});

test('calls that need no retry save up no more than that', () => {
  const budget = new RetryBudget();
  for (let call = 0; call < 100_000; call++) budget.deposit();
  expect(taken(budget)).toBe(200);
});
