import { expect, test } from 'bun:test';
import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { hashOf, keyIdOf, makeApiKey, readApiKey, shownOf } from '../../../shared/keys/api-key.ts';

const key = makeApiKey(randomBytes);

test('a key is sluice_ and 38 base62 characters, and reads back as itself (§1.2)', () => {
  expect(key).toMatch(/^sluice_[0-9A-Za-z]{38}$/);
  expect(readApiKey(key)).toBe(key);
});

test('every one of the 62 characters is drawn, and bytes above 247 are not folded onto the first ones', () => {
  let calls = 0;
  const skewed = makeApiKey((bytes) => {
    calls += 1;
    return calls === 1 ? new Uint8Array(bytes).fill(255) : new Uint8Array(bytes).fill(61);
  });
  expect(calls).toBe(2);
  expect(skewed).toStartWith(`sluice_${'z'.repeat(32)}`);
});

test('a changed character anywhere makes it no key, without a look-up', () => {
  fc.assert(
    fc.property(fc.integer({ min: 7, max: 44 }), fc.constantFrom(...'0aZ_'), (i, letter) => {
      fc.pre(key[i] !== letter);
      expect(readApiKey(key.slice(0, i) + letter + key.slice(i + 1))).toBeUndefined();
    }),
  );
});

test.each(['', 'sluice_', key.slice(1), `${key}a`, `${key}\n`, ` ${key}`, key.replace('sluice_', 'sluicy_')])(
  '%j is no key',
  (text) => expect(readApiKey(text)).toBeUndefined(),
);

test('the key id is the first 16 hex digits of SHA-256', () => {
  const sha256 = new Bun.CryptoHasher('sha256').update(key).digest('hex');
  expect(hashOf(key).toString('hex')).toBe(sha256);
  expect(keyIdOf(hashOf(key))).toEqual(sha256.slice(0, 16) as never); // the brand is not a string's
});

test('what is shown of a key is four characters at each end', () => {
  expect(shownOf(key)).toEqual({ prefix: key.slice(0, 11), last4: key.slice(-4) });
});
