import { expect, test } from 'bun:test';
import { createFailedKeys, neighbourhoodOf } from '../../../gateway/request/auth.ts';
import { createVirtualClock } from '../virtual-clock.ts';

function failing() {
  const { clock, advance } = createVirtualClock();
  return { ...createFailedKeys(clock), advance };
}

test('no ten seconds see more than a hundred, wherever they begin', () => {
  const { note, waitMs, advance } = failing();
  const instants: number[] = [];
  for (let ms = 0; ms < 60_000; ms += 37) {
    if (waitMs('a') === undefined) {
      note('a');
      instants.push(ms);
    }
    advance(37);
  }
  for (const from of instants)
    expect(instants.filter((at) => at >= from && at < from + 10_000).length).toBeLessThanOrEqual(100);
  expect(instants.length).toBeGreaterThan(500);
});

test('ten thousand addresses are remembered, and the one that failed longest ago goes first', () => {
  const { note, waitMs } = failing();
  for (let i = 0; i < 200; i++) note(i < 100 ? 'first' : 'second');
  for (let i = 2; i < 10_000; i++) note(`address ${i}`);
  note('first');
  note('one more');
  expect([waitMs('first') === undefined, waitMs('second') === undefined]).toEqual([false, true]);
});

test.each([
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['2001:db8:0:1:2:3:4:5', '2001:db8:0:1'],
  ['2001:0DB8:0000:0001::5', '2001:db8:0:1'],
  ['::1', '0:0:0:0'],
  ['fe80::1%eth0', 'fe80:0:0:0'],
  ['64:ff9b::192.0.2.1', '64:ff9b:0:0'],
])('what one caller can have many of counts as one: %s is of %s', (address, neighbourhood) => {
  expect(neighbourhoodOf(address)).toBe(neighbourhood);
});
