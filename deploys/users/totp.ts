import { createHmac, timingSafeEqual } from 'node:crypto';

/** RFC 6238 as every authenticator app speaks it: SHA-1, six digits, steps of 30 seconds. */
const STEP_SECONDS = 30;
const DIGITS = 6;
/** A code of the step before or after counts too: clocks differ, and people type. */
const STEPS_AROUND = [0, -1, 1] as const;
export const TOTP_SECRET_BYTES = 20;

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

/** RFC 4648 base32 without padding. */
export function base32(bytes: Uint8Array): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('');
  const groups = bits.match(/.{1,5}/g) ?? [];
  return groups.map((group) => BASE32.charAt(Number.parseInt(group.padEnd(5, '0'), 2))).join('');
}

/** The code of a time step (RFC 4226 5.3). */
export function codeOf(secret: Uint8Array, step: number): string {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(step));
  const mac = createHmac('sha1', secret).update(counter).digest();
  const offset = (mac[mac.length - 1] ?? 0) & 0xf;
  const number = mac.readUInt32BE(offset) & 0x7fff_ffff;
  return String(number % 10 ** DIGITS).padStart(DIGITS, '0');
}

/** The time step of an instant. */
export function stepAt(nowMs: number): number {
  return Math.floor(nowMs / 1_000 / STEP_SECONDS);
}

/**
 * The time step that `code` is of, above `afterStep`; `undefined`: none near `nowMs`. A step that was taken once is never
 * taken again (RFC 6238 5.2), so whoever reads a code over a shoulder cannot use it.
 */
export function stepOfCode(
  secret: Uint8Array,
  code: string,
  nowMs: number,
  afterStep: number,
): number | undefined {
  const typed = code.replaceAll(/\s/g, '');
  if (!/^\d{6}$/.test(typed)) return undefined;
  const now = stepAt(nowMs);
  return STEPS_AROUND.map((away) => now + away).find(
    (step) => step > afterStep && timingSafeEqual(Buffer.from(codeOf(secret, step)), Buffer.from(typed)),
  );
}

/** What a QR code for an authenticator app says. */
export function totpUri(secret: Uint8Array, email: string, issuer: string): string {
  const label = `${encodeURIComponent(issuer)}:${encodeURIComponent(email)}`;
  return `otpauth://totp/${label}?secret=${base32(secret)}&issuer=${encodeURIComponent(issuer)}`;
}
