import { expect, test } from 'bun:test';
import type { NodeId, RateAsk } from '../../gateway/lease/messages.ts';
import { createVirtualClock } from '../gateway/virtual-clock.ts';
import { createLeaseCentre } from './lease-centre.ts';

const ASK: RateAsk = {
  accountId: 1,
  revision: 1,
  rps: 5,
  burst: 10,
  spent: 0,
  wanted: 4,
  needed: 0,
  weight: 1,
  recovering: false,
};
// The brand is the identity file's to give; a test needs only a name.
const speaker = (seq: number) => ({ node: 'a' as NodeId, fence: 1, seq });

test('the fake centre answers, fails at once and fails late, as it is told', async () => {
  const { clock, advance } = createVirtualClock();
  const centre = createLeaseCentre(clock, 5);
  const first = centre.store.rates(speaker(1), [ASK]);
  advance(5);
  expect(await first).toMatchObject([{ kind: 'granted', grant: { granted: 4, left: 6 } }]);
  centre.conduct('fails');
  expect(await centre.store.rates(speaker(2), [ASK, ASK])).toEqual([{ kind: 'failed' }, { kind: 'failed' }]);
  centre.conduct('is silent');
  const last = centre.store.rates(speaker(3), [ASK]);
  advance(100);
  expect(await last).toEqual([{ kind: 'failed' }]);
  expect(centre.counts.calls).toBe(3);
});
