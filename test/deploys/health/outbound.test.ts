import { expect, test } from 'bun:test';
import { within } from '../../../deploys/health/outbound.ts';
import { createVirtualClock } from '../../fakes/chain-clock.ts';

const never = () => new Promise<never>(() => {});

test('work that ends in time gives its value and leaves no timer behind', async () => {
  const clock = createVirtualClock();
  const { signal } = new AbortController();
  expect(await within(clock, 100, signal, async () => 7)).toEqual({ kind: 'done', value: 7 });
  await clock.advance(0);
  expect(clock.sleepers()).toBe(0);
});

test('work that ignores its signal is told when its time is over, and left at that instant', async () => {
  const clock = createVirtualClock();
  let told: AbortSignal | undefined;
  let ended: string | undefined;
  const { signal } = new AbortController();
  void within(clock, 100, signal, (over) => ((told = over), never())).then(({ kind }) => (ended = kind));
  await clock.advance(99);
  expect([told?.aborted, ended]).toEqual([false, undefined]);
  await clock.advance(1);
  expect([told?.aborted, ended]).toEqual([true, 'timed-out']);
});

test('an aborted caller gets its answer at once', async () => {
  const over = new AbortController();
  const ended = within(createVirtualClock(), 100, over.signal, never);
  over.abort();
  expect(await ended).toEqual({ kind: 'timed-out' });
});

test('what work throws in time is thrown, and what it throws late is nobody’s', async () => {
  const clock = createVirtualClock();
  const { signal } = new AbortController();
  await expect(within(clock, 100, signal, () => Promise.reject(new Error('mine')))).rejects.toThrow('mine');
  const late = within(clock, 100, signal, async () => {
    await clock.sleep(200, signal);
    throw new Error('late');
  });
  await clock.advance(300);
  expect(await late).toEqual({ kind: 'timed-out' });
});
