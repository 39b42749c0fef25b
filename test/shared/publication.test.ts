import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { PLANS_BY_DEFAULT } from '../../shared/config/plans.ts';
import { type PublishedRow, rowFrom, rowTexts, termsFrom, termsText } from '../../shared/publication.ts';
import { testConfig } from '../started/gateway.ts';

const whole = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER });
const rows: fc.Arbitrary<PublishedRow> = fc.oneof(
  fc.record({
    kind: fc.constant('account' as const),
    id: whole,
    plan: fc.option(fc.string()),
    creditsGranted: fc.option(whole),
    suspended: fc.boolean(),
  }),
  fc.record({
    kind: fc.constant('key' as const),
    id: fc.string({ minLength: 1 }),
    hash: fc.string(),
    accountId: whole,
    expiresAtMs: fc.option(whole),
  }),
  fc.record({
    kind: fc.constant('gone' as const),
    subject: fc.constantFrom('account' as const, 'key' as const),
    id: fc.string({ minLength: 1 }),
  }),
);

test('every row is read as it was written', () => {
  fc.assert(fc.property(rows, (row) => expect(rowFrom(...rowTexts(row))).toEqual(row)));
});

test.each([
  ['', ''],
  ['k', ''],
  ['x1', '[1,"h",null]'],
  ['ak', '[null,null,0]'],
  ['a1', '[1,null,0]'],
  ['k1', '["1","h",null]'],
  ['k1', '[1,"h",1.5]'],
  ['k1', 'null'],
  ['k1', '{}'],
  ['k1', '[1'],
])('what is no row of ours is none: %s %s', (name, text) => expect(rowFrom(name, text)).toBeUndefined());

test('plans and prices are read as they were written, in one spelling', () => {
  const { plans, prices } = testConfig({
    plans: { zeta: { rps: 0.5, burst: 3 }, alpha: { rps: 9, credits: 7, max_batch: 2, scans: 3 } },
    credits: { default: 3, methods: { getSlot: 9 } },
  });
  const read = termsFrom(termsText({ plans, prices }));
  expect(read && [...read.plans].toSorted()).toEqual([...plans].toSorted());
  expect(read?.prices.default).toBe(3);
  expect(read && [...read.prices.methods].toSorted()).toEqual([...prices.methods].toSorted());
  const turned = { plans: new Map([...plans].toReversed()), prices };
  expect(termsText(turned)).toBe(termsText({ plans, prices }));
  expect(plans.size).toBe(Object.keys(PLANS_BY_DEFAULT).length + 2);
});

test.each(['', '[]x', '{"plans":{"a":{"rps":-1}}}', '{"credits":{"default":"much"}}'])(
  'terms that break the rules of a config are none: %s',
  (text) => expect(termsFrom(text)).toBeUndefined(),
);
