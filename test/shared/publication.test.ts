import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { PLANS_BY_DEFAULT } from '../../shared/config/plans.ts';
import {
  accountFrom,
  accountText,
  keyFrom,
  keyText,
  termsFrom,
  termsText,
} from '../../shared/publication.ts';
import { testConfig } from '../started/gateway.ts';

const whole = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER });
const accounts = fc.record({
  plan: fc.option(fc.string()),
  creditsGranted: fc.option(whole),
  suspended: fc.boolean(),
});
const keys = fc.record({ hash: fc.string(), accountId: whole, expiresAtMs: fc.option(whole) });

test('accounts and keys are read as they were written', () => {
  fc.assert(
    fc.property(accounts, keys, (account, key) => {
      expect([accountFrom(accountText(account)), keyFrom(keyText(key))]).toEqual([account, key]);
    }),
  );
});

test.each(['', 'null', '{}', '[1', '[]', '["1","h"]', '[1,1.5,0]', '[1,"h","x"]'])(
  'what is no row of ours is none: %s',
  (text) => expect([accountFrom(text), keyFrom(text)]).toEqual([undefined, undefined]),
);

test('plans and prices are read as they were written, in one spelling', () => {
  const { plans, prices } = testConfig({
    plans: {
      zeta: { rps: 0.5, burst: 3 },
      alpha: { rps: 9, credits: 7, max_batch: 2, scans: 3, in_flight: 5, send_fanout: 3 },
    },
    credits: { default: 3, methods: { getSlot: 9 } },
  });
  const read = termsFrom(termsText({ plans, prices }));
  expect(read).toEqual({ plans, prices });
  const turned = { plans: new Map([...plans].toReversed()), prices };
  expect(termsText(turned)).toBe(termsText({ plans, prices }));
  expect(plans.size).toBe(Object.keys(PLANS_BY_DEFAULT).length + 2);
});

test('terms of a release without calls at once are read, and those that keep to the default are as it writes them', () => {
  const { plans, prices } = testConfig({ plans: { alpha: { rps: 9, burst: 30 } } });
  const text = termsText({ plans, prices });
  expect(text).not.toMatch(/in_flight|send_fanout/);
  expect(termsFrom(text)?.plans.get('alpha')?.inFlight).toBe(30);
});

test.each(['', '[]x', '{"plans":{"a":{"rps":-1}}}', '{"credits":{"default":"much"}}'])(
  'terms that break the rules of a config are none: %s',
  (text) => expect(termsFrom(text)).toBeUndefined(),
);
