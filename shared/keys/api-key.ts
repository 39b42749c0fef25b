import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { Brand } from '../brand.ts';

/** A customer's secret in a well-formed spelling. Held in memory while it is used; never written, logged or put in an error. */
export type ApiKey = Brand<string, 'ApiKey'>;

/** The first 16 hex digits of SHA-256(key): the key's name everywhere inside, safe to log. */
export type KeyId = Brand<string, 'KeyId'>;

const PREFIX = 'sluice_';
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const BODY_LENGTH = 32;
const CHECK_LENGTH = 6;
const SHAPE = new RegExp(`^${PREFIX}([0-9A-Za-z]{${BODY_LENGTH}})([0-9A-Za-z]{${CHECK_LENGTH}})$`);

/** `sluice_`, 32 base62 characters and 6 of their CRC-32. `random` gives n uniform bytes; ~190 bits cannot be guessed. */
export function makeApiKey(random: (bytes: number) => Uint8Array): ApiKey {
  let body = '';
  while (body.length < BODY_LENGTH) {
    for (const byte of random(BODY_LENGTH)) {
      // 248 is the largest multiple of 62 in a byte; what lies above would favour the first letters.
      if (byte < 248 && body.length < BODY_LENGTH) body += BASE62.charAt(byte % 62);
    }
  }
  // The shape and the check are right by construction.
  return `${PREFIX}${body}${checkOf(body)}` as ApiKey;
}

/** `text` as a key when its shape and check digits are right; a typing error is recognised without a look-up. */
export function readApiKey(text: string): ApiKey | undefined {
  const [, body, check] = SHAPE.exec(text) ?? [];
  if (body === undefined || checkOf(body) !== check) return undefined;
  return text as ApiKey; // the two tests above are what the brand promises
}

export function hashOf(key: ApiKey): Buffer {
  return createHash('sha256').update(key).digest();
}

export function keyIdOf(hash: Buffer): KeyId {
  return hash.toString('hex', 0, 8) as KeyId; // made from a hash, as the brand promises
}

/** The part of a key that a page may show: its first and last characters. */
export function shownOf(key: ApiKey): Readonly<{ prefix: string; last4: string }> {
  return { prefix: key.slice(0, PREFIX.length + 4), last4: key.slice(-4) };
}

function checkOf(body: string): string {
  let rest = crc32(body);
  let digits = '';
  for (let i = 0; i < CHECK_LENGTH; i++) {
    digits = BASE62.charAt(rest % 62) + digits;
    rest = Math.floor(rest / 62);
  }
  return digits;
}
