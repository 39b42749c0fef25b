import { expect, test } from 'bun:test';
import { createVirtualClock } from './chain-clock.ts';

test('sleepers wake in the order of their instants, each at its own', async () => {
  const clock = createVirtualClock(0);
  const woken: [string, number][] = [];
  const { signal } = new AbortController();
  void clock.sleep(20, signal).then(() => woken.push(['late', clock.now()]));
  void clock.sleep(10, signal).then(async () => {
    woken.push(['early', clock.now()]);
    await clock.sleep(5, signal);
    woken.push(['after early', clock.now()]);
  });
  await clock.advance(19);
  expect(woken).toEqual([
    ['early', 10],
    ['after early', 15],
  ]);
  expect(clock.sleepers()).toBe(1);
  await clock.advance(1);
  expect(woken.at(-1)).toEqual(['late', 20]);
});

test('an aborted sleeper wakes without time passing', async () => {
  const clock = createVirtualClock(0);
  const over = new AbortController();
  const slept = clock.sleep(1_000, over.signal);
  over.abort();
  await slept;
  expect([clock.now(), clock.sleepers()]).toEqual([0, 0]);
});
