import { expect, test } from 'bun:test';
import fc from 'fast-check';
import type { RateReport } from '../../../gateway/cluster/messages.ts';
import { startAuthority } from './authority-alone.ts';
import { weighted } from './model-runs.ts';

// The authority beside the simplest thing that does the same: one exact bucket.

const NODES = 3;

test('calls one by one, at whatever process, are granted as by one bucket, and wait as long', () => {
  const wait = fc.oneof(fc.nat(30), fc.nat(3_000), fc.constant(-3_600_000));
  const step = fc.oneof(
    weighted(8, 'call', { node: fc.nat(NODES - 1) }),
    weighted(4, 'wait', { ms: wait }),
    weighted(1, 'again', { back: fc.nat(8) }),
  );
  const plan = fc.constantFrom(
    { rps: 5, burst: 10 },
    { rps: 100, burst: 3 },
    { rps: 0.5, burst: 1 },
    { rps: 10_000_000, burst: 20 },
  );
  const steps = fc.array(step, { minLength: 30, maxLength: 120, size: 'max' });
  const property = fc.property(plan, steps, ({ rps, burst }, all) => {
    const authority = startAuthority();
    const spent = Array.from({ length: NODES }, () => 0);
    let micro = burst * 1e6;
    for (const each of all) {
      if (each.kind === 'again') authority.again(each.back);
      else if (each.kind === 'wait') {
        authority.wait(each.ms);
        micro = Math.min(burst * 1e6, micro + Math.max(0, each.ms) * rps * 1_000);
        // The authority sees the clock when a message comes.
        authority.rate('0', { rps, burst, spent: spent[0] ?? 0 });
      } else {
        const report = { rps, burst, spent: spent[each.node] ?? 0, needed: 1 };
        const grant = authority.rate(String(each.node), report);
        expect(grant.immediate).toBe(micro >= 1e6 ? 1 : 0);
        if (micro >= 1e6) micro -= 1e6;
        else expect(grant.waitMs).toBe(Math.ceil((1e6 - micro) / (rps * 1_000)));
        expect(grant.remaining).toBe(Math.floor(micro / 1e6));
        spent[each.node] = grant.spent;
      }
    }
  });
  fc.assert(property, { numRuns: 400 });
});

test('C9 the largest plans stay within exact integers', () => {
  const authority = startAuthority();
  const large = { rps: 10_000_000, burst: 10_000_000, wanted: 10_000_000, weight: 10_000_000 };
  const numbers: number[] = [];
  const send = (at: number, part: Partial<RateReport>) =>
    numbers.push(...Object.values(authority.rate(String(at), { ...large, ...part })));
  send(0, {});
  send(1, {});
  authority.wait(7);
  send(1, { spent: 9_007_199_254 });
  authority.wait(86_400_000);
  send(2, { needed: 10_000_000 });
  const [, rate] = JSON.parse(authority.blob() ?? '');
  numbers.push(...rate.flat(2).filter((value: unknown) => typeof value === 'number'));
  expect(numbers.length).toBeGreaterThan(40);
  expect(numbers.every(Number.isSafeInteger)).toBe(true);
});
