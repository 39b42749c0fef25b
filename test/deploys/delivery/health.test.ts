import { expect, test } from 'bun:test';
import { deliveryHealth } from '../../../deploys/delivery/deliveries.ts';
import { bothHealths } from '../../../deploys/health/health.ts';

const calm = { underWay: 0, trouble: undefined };
const NOW = 1_000_000;

test.each([
  [undefined, true],
  [NOW + 5, true],
  [NOW - 300_000, true],
  [NOW - 300_001, false],
])('with the oldest delivery due at %p, being well at 1000000 is %p', (oldestDueAtMs, isWell) => {
  expect(deliveryHealth(calm, { due: 3, oldestDueAtMs }, NOW).isWell).toBe(isWell);
});

test('a receiver that hangs does not make the service ill, however much waits behind it', () => {
  const busy = { underWay: 4, trouble: undefined };
  expect(deliveryHealth(busy, { due: 300, oldestDueAtMs: NOW - 900_000 }, NOW).isWell).toBe(true);
});

test('what waits is told with how long it has', () => {
  expect(deliveryHealth(calm, { due: 3, oldestDueAtMs: NOW - 600_000 }, NOW).sentence).toBe(
    '3 deliveries are due, the oldest for 10 minutes.',
  );
});

test('a queue that cannot be used is an illness, and its reason is for the log alone (E23)', () => {
  const health = deliveryHealth(
    { underWay: 1, trouble: new Error('/secret/path') },
    { due: 0, oldestDueAtMs: undefined },
    NOW,
  );
  expect(health.isWell).toBe(false);
  expect(health.sentence).not.toContain('/secret/path');
});

test('the app is well when both its parts are, and says of the second only what ails it', () => {
  const [well, ill] = [
    { isWell: true, sentence: 'ok.' },
    { isWell: false, sentence: 'Ill.' },
  ];
  expect(bothHealths(well, undefined)).toEqual(well);
  expect(bothHealths(well, { isWell: true, sentence: 'Fine.' })).toEqual(well);
  expect(bothHealths(well, ill)).toEqual({ isWell: false, sentence: 'ok. Ill.' });
  expect(bothHealths(ill, well).isWell).toBe(false);
});
