import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import type { Secret } from '../../shared/secret.ts';
import { decrypt, encrypt } from '../webhooks/seal.ts';

const KEY_BYTES = 32;

/** Keys derived (HKDF-SHA-256) from those that seal webhook secrets: the first signs and seals, the others only check and open. */
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

  return {
    /** A MAC of 32 bytes. `use` keeps one kind of text from passing as another. */
    sign: (use: string, text: string): Buffer => mac(secrets[0], use, text),
    isSigned: (use: string, text: string, signature: Uint8Array): boolean =>
      signature.length === KEY_BYTES &&
      secrets.some((secret) => timingSafeEqual(mac(secret, use, text), signature)),
    /** Sealed for one user, it opens for no other. */
    seal: (bytes: Uint8Array, userId: string): Uint8Array => {
      const [key = Buffer.alloc(0)] = sealing; // there is always a first
      return encrypt(key, bytes, userId, random);
    },
    /** `undefined`: sealed under another key, for another user, or damaged. */
    unseal: (sealed: Uint8Array, userId: string): Buffer | undefined => {
      for (const key of sealing) {
        try {
          return decrypt(key, sealed, userId);
        } catch {
          // Perhaps an earlier key's.
        }
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
