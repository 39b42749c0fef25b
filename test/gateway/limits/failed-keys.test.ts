import { expect, test } from 'bun:test';
import { createFailedKeys, neighbourhoodOf } from '../../../gateway/request/auth.ts';
import { createVirtualClock } from '../virtual-clock.ts';

function failing() {
  const { clock, advance } = createVirtualClock();
  const failed = createFailedKeys(clock);
  const fail = (times: number, address = '192.0.2.1') => {
    for (let i = 0; i < times; i++) failed.note(address);
  };
  return { ...failed, advance, fail };
}

test('after the hundredth failure an address waits, and exactly as long as is said lets one more in', () => {
  const { fail, waitMs, advance } = failing();
  fail(1);
  advance(4_000);
  fail(98);
  expect(waitMs('192.0.2.1')).toBeUndefined();
  fail(1);
  expect([waitMs('192.0.2.1'), waitMs('192.0.2.2')]).toEqual([6_000, undefined]);
  advance(5_999);
  expect(waitMs('192.0.2.1')).toBe(1);
  advance(1);
  expect(waitMs('192.0.2.1')).toBeUndefined();
  fail(1);
  expect(waitMs('192.0.2.1')).toBe(4_000);
});

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
  const { fail, note, waitMs } = failing();
  fail(100, 'first');
  fail(100, 'second');
  for (let i = 2; i < 10_000; i++) note(`address ${i}`);
  note('first');
  note('one more');
  expect([waitMs('first') === undefined, waitMs('second') === undefined]).toEqual([false, true]);
});

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['2001:db8:0:1:2:3:4:5', '2001:db8:0:1'],
  ['2001:db8:0:1::5', '2001:db8:0:1'],
  ['2001:db8::5', '2001:db8:0:0'],
  ['2001:0DB8:0000:0000::5', '2001:db8:0:0'],
  ['::1', '0:0:0:0'],
  ['fe80::1%eth0', 'fe80:0:0:0'],
  ['1:2:3::', '1:2:3:0'],
  ['64:ff9b::192.0.2.1', '64:ff9b:0:0'],
])('what one caller can have many of counts as one: %s is of %s', (address, neighbourhood) => {
  expect(neighbourhoodOf(address)).toBe(neighbourhood);
});
