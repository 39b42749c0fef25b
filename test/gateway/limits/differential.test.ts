import { expect, test } from 'bun:test';
import fc from 'fast-check';
import type { RateReport } from '../../../gateway/limits/messages.ts';
import { startAuthority } from './authority-alone.ts';

// The authority beside the simplest thing that does the same: one exact bucket, and one ledger of whole credits.

const NODES = 3;

const again = fc.record({ kind: fc.constant('again' as const), back: fc.nat(8) });
const node = fc.nat(NODES - 1);

test('calls one by one, at whatever process, are granted as by one bucket, and wait as long', () => {
  const wait = fc.oneof(fc.nat(30), fc.nat(3_000), fc.constant(-3_600_000));
  const step = fc.oneof(
    { weight: 8, arbitrary: fc.record({ kind: fc.constant('call' as const), node }) },
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: wait }) },
    { weight: 1, arbitrary: again },
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

test('credits that are held and free are always those of a ledger that adds up what was charged', () => {
  const use = fc.record({
    kind: fc.constant('use' as const),
    node,
    part: fc.double({ min: 0, max: 1, noNaN: true }),
    refunds: fc.nat(2),
    wanted: fc.nat(300),
    needed: fc.constantFrom(0, 0, 1, 50),
  });
  const wait = fc.record({ kind: fc.constant('wait' as const), ms: fc.nat(3_000) });
  const step = fc.oneof({ weight: 8, arbitrary: use }, { weight: 2, arbitrary: wait }, again);
  const steps = fc.array(step, { minLength: 30, maxLength: 120, size: 'max' });
  const property = fc.property(fc.constantFrom(10, 500, 9_000_000_000), steps, (total, all) => {
    const authority = startAuthority();
    const nodes = Array.from({ length: NODES }, () => ({ charged: 0, refunded: 0, allowance: 0 }));
    const report = (at: number, wanted: number, needed: number) => {
      const { charged = 0, refunded = 0 } = nodes[at] ?? {};
      return authority.credits(String(at), { total, charged, refunded, wanted, needed });
    };
    const spent = () => nodes.reduce((sum, { charged, refunded }) => sum + charged - refunded, 0);
    for (const each of all) {
      const mine = each.kind === 'use' ? nodes[each.node] : undefined;
      if (each.kind === 'again') authority.again(each.back);
      if (each.kind === 'wait') authority.wait(each.ms);
      if (each.kind !== 'use' || mine === undefined) continue;
      mine.charged += Math.floor(each.part * mine.allowance);
      mine.refunded += Math.min(each.refunds, mine.charged - mine.refunded);
      const grant = report(each.node, each.wanted, each.needed);
      mine.allowance = grant.allowance;
      const { available, allowance, taken } = grant;
      const others = taken.values().reduce((sum, credits) => sum + credits, 0);
      expect(available + allowance + others).toBe(total - (mine.charged - mine.refunded));
      expect(Math.min(available, mine.allowance)).toBeGreaterThanOrEqual(0);
    }
    const last = nodes.map((_, at) => report(at, 0, 0)).at(-1);
    expect(last).toMatchObject({ allowance: 0, available: total - spent(), heldByOthers: 0 });
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
