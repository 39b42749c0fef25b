import { expect, test } from 'bun:test';
import { createLeaving } from '../../gateway/server.ts';
import { createVirtualClock } from '../fakes/chain-clock.ts';

function begun(mostMs: number) {
  const clock = createVirtualClock();
  const leaving = createLeaving(clock);
  let isOver = false;
  void leaving.begin(mostMs).then(() => (isOver = true));
  const ask = () => leaving.last(Promise.resolve(new Response('an answer')));
  return { clock, leaving, ask, isOver: () => isOver };
}

test('it has not begun until it begins', () => {
  expect(createLeaving(createVirtualClock()).hasBegun()).toBe(false);
  expect(begun(1_000).leaving.hasBegun()).toBe(true);
});

test('every answer tells its caller to close the connection', async () => {
  expect((await begun(1_000).ask()).headers.get('connection')).toBe('close');
});

test('it is over a quarter of a second after the last request', async () => {
  const { clock, ask, isOver } = begun(5_000);
  await clock.advance(200);
  await ask();
  await clock.advance(249);
  expect(isOver()).toBe(false);
  await clock.advance(1);
  expect(isOver()).toBe(true);
});

test('it is over in the end, though requests go on coming', async () => {
  const { clock, ask, isOver } = begun(1_000);
  for (let ms = 0; ms < 999; ms += 111) {
    await ask();
    await clock.advance(111);
  }
  expect(isOver()).toBe(false);
  await clock.advance(1);
  expect(isOver()).toBe(true);
});
