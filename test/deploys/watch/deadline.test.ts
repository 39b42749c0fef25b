import { expect, test } from 'bun:test';
import { within } from '../../../deploys/watch/deadline.ts';
import { createVirtualClock } from '../../fakes/chain-clock.ts';

const never = () => new Promise<never>(() => {});

test('work that ends in time gives its value and leaves no timer behind', async () => {
  const clock = createVirtualClock();
  const { signal } = new AbortController();
  expect(await within(clock, 100, signal, async () => 7)).toEqual({ kind: 'done', value: 7 });
  await clock.advance(0);
  expect(clock.sleepers()).toBe(0);
});

test.each([
  [99, undefined],
  [100, 'timed-out'],
])('work that ignores its signal is left after 100 ms: at %i ms it is %s', async (ms, kind) => {
  const clock = createVirtualClock();
  let ended: string | undefined;
  void within(clock, 100, new AbortController().signal, never).then((outcome) => (ended = outcome.kind));
  await clock.advance(ms);
  expect(ended).toBe(kind);
});

test('work is told when its time is over', async () => {
  const clock = createVirtualClock();
  let told: AbortSignal | undefined;
  const ended = within(clock, 100, new AbortController().signal, (signal) => ((told = signal), never()));
  expect(told?.aborted).toBe(false);
  await clock.advance(100);
  await ended;
  expect(told?.aborted).toBe(true);
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
