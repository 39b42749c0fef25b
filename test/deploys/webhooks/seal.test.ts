import { describe, expect, test } from 'bun:test';
import { createSeal, makeWebhookSecret } from '../../../deploys/webhooks/seal.ts';
import { Secret } from '../../../shared/secret.ts';
import { random } from '../outbox/queue.ts';

const keyOf = (byte: number) => new Secret(Buffer.alloc(32, byte).toString('base64'));
const owner = { accountId: 1, webhookId: 'one' };
const shown = new Secret('whsec_é');

describe('a sealed secret', () => {
  const { seal, unseal } = createSeal([keyOf(1)], random);

  test('is opened as it was', () => {
    expect(unseal(seal(shown, owner), owner).reveal()).toBe('whsec_é');
  });

  test('shows nothing of itself, and never looks the same twice', () => {
    const [one, two] = [seal(shown, owner).ciphertext, seal(shown, owner).ciphertext];
    expect(Buffer.from(one).includes('whsec')).toBe(false);
    expect(one).not.toEqual(two);
    expect(one.subarray(0, 12)).not.toEqual(two.subarray(0, 12));
  });

  test.each([
    ['another account', { ...owner, accountId: 2 }],
    ['another webhook', { ...owner, webhookId: 'two' }],
  ])('is not opened for %s', (_, other) => {
    const sealed = seal(shown, owner);
    expect(() => unseal(sealed, other)).toThrow();
  });

  test('is not opened when a single bit of it was changed, wherever', () => {
    const sealed = seal(shown, owner);
    for (let i = 0; i < sealed.ciphertext.length; i++) {
      const ciphertext = Uint8Array.from(sealed.ciphertext);
      ciphertext[i] = (ciphertext[i] ?? 0) ^ 1;
      expect(() => unseal({ ...sealed, ciphertext }, owner)).toThrow();
    }
  });

  test.each([0, 5, 12, 20, 28])('is not opened when only %i of its bytes are left', (length) => {
    const sealed = seal(shown, owner);
    const ciphertext = sealed.ciphertext.subarray(0, length);
    expect(() => unseal({ ...sealed, ciphertext }, owner)).toThrow();
  });
});

test('what an older key sealed is still opened, and new secrets are sealed under the newest', () => {
  const old = createSeal([keyOf(1)], random).seal(shown, owner);
  const both = createSeal([keyOf(2), keyOf(1)], random);
  expect(both.unseal(old, owner).reveal()).toBe('whsec_é');
  const alone = createSeal([keyOf(2)], random);
  expect(alone.unseal(both.seal(shown, owner), owner).reveal()).toBe('whsec_é');
  expect(() => alone.unseal(old, owner)).toThrow('sealed under another key');
});

test('a webhook secret is whsec_ and the hex of 32 random bytes', () => {
  const asked: number[] = [];
  const secret = makeWebhookSecret((bytes) => (asked.push(bytes), new Uint8Array(bytes).fill(0xa5)));
  expect(secret.reveal()).toBe(`whsec_${'a5'.repeat(32)}`);
  expect(asked).toEqual([32]);
});
