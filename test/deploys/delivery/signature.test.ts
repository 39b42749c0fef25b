import { describe, expect, test } from 'bun:test';
import { signatureOf } from '../../../deploys/delivery/send.ts';
import { isSigned } from './is-signed.ts';
import { Secret } from '../../../shared/secret.ts';

const SECRET = new Secret('whsec_0123456789abcdef');
const BODY = Buffer.from('{"id":"a","event":"ping"}');
const AT = 1_790_000_000;

/** The expected values come from `printf '%s' … | openssl dgst -sha256 -hmac …`. */
describe('the signature is the one that openssl computes (spec 6.3)', () => {
  test.each([
    ['key', 1, '', '53123bc365c2fe4bee48bc5cc6cd6c19699147d43513154ed34277c7c063e80f'],
    [
      'whsec_0123456789abcdef',
      AT,
      '{"id":"a","event":"ping"}',
      'ac7ab32e9c1e47d85e2ad9adb22815c7efd4a8a185cfefedfdaa9fae467663b5',
    ],
    ['schlüssel', AT, '{"label":"é"}', 'bd75fd1dd57f54f016589302b1a78dcf12161faf8eaa274f235f00f63f06f720'],
  ])('%s at %d over %j', (secret, at, body, hex) => {
    expect(signatureOf(new Secret(secret), at, Buffer.from(body))).toBe(`sha256=${hex}`);
  });
  test('also for bytes that are no text', () => {
    expect(signatureOf(SECRET, 5, Uint8Array.of(0, 255, 10))).toBe(
      'sha256=eb54719920ed0175ea2920be9e231c5e9adbea5bd7f8c0bde1d1637805ee78a2',
    );
  });
});

describe('the verifier (spec 6.4, E31)', () => {
  const signature = signatureOf(SECRET, AT, BODY);
  const check = (change: { timestamp?: string; signature?: string; body?: Uint8Array; now?: number }) =>
    isSigned(
      SECRET,
      { timestamp: change.timestamp ?? `${AT}`, signature: change.signature ?? signature },
      change.body ?? BODY,
      change.now ?? AT,
    );

  test('accepts what was signed', () => expect(check({})).toBe(true));
  test.each([-300, 300])('accepts a clock that is %d s off', (off) =>
    expect(check({ now: AT + off })).toBe(true),
  );
  test.each([-301, 301])('refuses a clock that is %d s off', (off) =>
    expect(check({ now: AT + off })).toBe(false),
  );
  test('refuses a body that was parsed and printed again', () => {
    const printed = Buffer.from(JSON.stringify(JSON.parse(BODY.toString()), null, 1));
    expect(check({ body: printed })).toBe(false);
  });
  test('refuses a signature cut short, made longer, in upper case, or without its name', () => {
    const wrong = [signature.slice(0, -1), `${signature}0`, signature.toUpperCase(), signature.slice(7), ''];
    expect(wrong.map((each) => check({ signature: each }))).toEqual(wrong.map(() => false));
  });
  test('refuses another timestamp than the one that was signed, in any spelling', () => {
    const wrong = [`${AT + 1}`, `0${AT}`, `+${AT}`, `${AT}.0`, ` ${AT}`, '', 'NaN', '9'.repeat(400)];
    expect(wrong.map((timestamp) => check({ timestamp }))).toEqual(wrong.map(() => false));
  });
  test('refuses another secret', () => {
    expect(isSigned(new Secret('whsec_other'), { timestamp: `${AT}`, signature }, BODY, AT)).toBe(false);
  });
});
