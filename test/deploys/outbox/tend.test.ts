import { expect, test } from 'bun:test';
import { tendOutbox } from '../../../deploys/outbox/prune.ts';
import { createVirtualClock } from '../../fakes/chain-clock.ts';
import { silentLog } from '../../started/gateway.ts';

const [HOUR, DAY] = [3_600_000, 86_400_000];

test('what is old is forgotten at the start and every day, batch by batch with pauses, and an hour after a failure', async () => {
  const clock = createVirtualClock(0);
  const over = new AbortController();
  const lines: unknown[] = [];
  const calls: number[] = [];
  const answers = [true, true, false, 'broken', false, false];
  const prune = (nowMs: number) => {
    calls.push(nowMs);
    const answer = answers.shift() ?? false;
    if (answer === 'broken') throw new Error('disk full');
    return answer === true;
  };
  const tending = tendOutbox({ prune, clock, log: silentLog(lines) }, over.signal);
  await clock.advance(2 * DAY + 2 * HOUR);
  expect(calls).toEqual([0, 50, 100, DAY + 100, DAY + HOUR + 100, 2 * DAY + HOUR + 100]);
  expect(JSON.stringify(lines)).toContain('forgetting old deliveries broke');
  over.abort();
  await tending;
  expect(clock.sleepers()).toBe(0);
});
