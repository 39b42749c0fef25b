import { createCipheriv, createDecipheriv, createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import type { Secret } from '../../shared/secret.ts';

const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const CIPHER = 'aes-256-gcm';

/**
 * Keys derived (HKDF-SHA-256) from those that webhook secrets are sealed under, each 32 bytes in base64: the first signs and
 * seals, the others only check and open. `random` gives n uniform bytes.
 */
export function createConsoleKeys(
  secrets: readonly [Secret, ...Secret[]],
  random: (bytes: number) => Uint8Array,
) {
  const derived = (secret: Secret, use: string) =>
    Buffer.from(
      hkdfSync('sha256', Buffer.from(secret.reveal(), 'base64'), '', `sluice console ${use}`, KEY_BYTES),
    );
  const mac = (secret: Secret, use: string, text: string) =>
    createHmac('sha256', derived(secret, use)).update(text).digest();
  const sealing = secrets.map((secret) => derived(secret, 'second factor'));

  function opened(key: Buffer, sealed: Uint8Array, userId: string): Buffer | undefined {
    try {
      const options = { authTagLength: TAG_BYTES };
      const decipher = createDecipheriv(CIPHER, key, sealed.subarray(0, NONCE_BYTES), options);
      decipher.setAAD(Buffer.from(userId));
      decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
      return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
    } catch {
      return undefined;
    }
  }

  return {
    /** 32 bytes that nobody can make without the key. `use` keeps one kind of text from passing as another. */
    sign: (use: string, text: string): Buffer => mac(secrets[0], use, text),
    isSigned: (use: string, text: string, signature: Uint8Array): boolean =>
      signature.length === KEY_BYTES &&
      secrets.some((secret) => timingSafeEqual(mac(secret, use, text), signature)),
    /** Sealed for one user, it opens for no other. */
    seal: (bytes: Uint8Array, userId: string): Uint8Array => {
      const nonce = random(NONCE_BYTES);
      const [key = Buffer.alloc(0)] = sealing; // there is always a first
      const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
      cipher.setAAD(Buffer.from(userId));
      return Buffer.concat([nonce, cipher.update(bytes), cipher.final(), cipher.getAuthTag()]);
    },
    /** `undefined`: sealed under another key, for another user, or damaged. */
    unseal: (sealed: Uint8Array, userId: string): Buffer | undefined => {
      for (const key of sealing) {
        const bytes = opened(key, sealed, userId);
        if (bytes !== undefined) return bytes;
      }
      return undefined;
    },
  };
}

/** Signs, and hides at rest, what the login needs; every use has a key of its own. */
export type ConsoleKeys = ReturnType<typeof createConsoleKeys>;

const CHARACTERS_MAX = 4_096;

/** Tickets of one `use`, good for `lastMs`. They are readable by who carries them, so no secret of others goes in. */
export function createTickets(keys: ConsoleKeys, use: string, lastMs: number) {
  return {
    make: (fields: Readonly<Record<string, string>>, nowMs: number): string => {
      const text = Buffer.from(JSON.stringify({ fields, untilMs: nowMs + lastMs })).toString('base64url');
      return `${text}.${keys.sign(use, text).toString('base64url')}`;
    },
    /** The fields, or `undefined`: not ours, of another use, or over. */
    read: (ticket: string | undefined, nowMs: number): Readonly<Record<string, string>> | undefined => {
      if (ticket === undefined || ticket.length > CHARACTERS_MAX) return undefined;
      const [text = '', signature = ''] = ticket.split('.');
      if (!keys.isSigned(use, text, Buffer.from(signature, 'base64url'))) return undefined;
      const { fields, untilMs } = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'));
      return nowMs < untilMs ? fields : undefined;
    },
  };
}
