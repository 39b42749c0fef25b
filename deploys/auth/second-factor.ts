import { createHash } from 'node:crypto';
import { Secret, TOTP } from 'otpauth';
import type { Clock } from '../../shared/clock.ts';
import type { Store } from '../../shared/store/open.ts';
import { type Actor, actorOf, type Audit, createAudit } from '../accounts/audit.ts';
import type { ConsoleKeys } from './console-keys.ts';
import type { User } from './users.ts';

/** The name of the service in authenticator apps. */
const ISSUER = 'Sluice';
const TOTP_SECRET_BYTES = 20;
const BACKUP_CODES = 10;
/** 50 bits: with a handful of guesses an hour, more than enough. */
const BACKUP_CODE_CHARACTERS = 10;

type SecondFactorRow = { totp_secret: Uint8Array | null; totp_pending: Uint8Array | null; totp_step: number };
type SecondFactorDeps = Readonly<{
  keys: ConsoleKeys;
  note: Audit['note'];
  clock: Clock;
  random(bytes: number): Uint8Array;
}>;

/** The second factors of the users of `store`; secrets are sealed, backup codes are hashes. */
export function createSecondFactor(store: Store, { keys, note, clock, random }: SecondFactorDeps) {
  const row = store.prepare<SecondFactorRow, [string]>(`
    SELECT totp_secret, totp_pending, totp_step FROM users WHERE id = ?`);
  const turnOn =
    'UPDATE users SET totp_secret = totp_pending, totp_pending = NULL, totp_step = ? WHERE id = ?';
  const taken = store.prepare('UPDATE users SET totp_step = ?1 WHERE id = ?2 AND totp_step < ?1');
  const addCode = store.prepare('INSERT INTO backup_codes VALUES (?, ?)');
  const useCode = store.prepare('DELETE FROM backup_codes WHERE user_id = ? AND hash = ?');

  function pending(user: User): Uint8Array | undefined {
    const sealed = row.get(user.id)?.totp_pending ?? undefined;
    return sealed && keys.unseal(sealed, user.id);
  }

  const confirm = store.transaction((user: User, code: string, kept?: Uint8Array) => {
    const secret = pending(user);
    const step = secret && stepOfCode(secret, code, clock.now(), 0);
    if (step === undefined) return undefined;
    store.run(turnOn, [step, user.id]);
    store.run('DELETE FROM backup_codes WHERE user_id = ?', [user.id]);
    store.run('DELETE FROM sessions WHERE user_id = ? AND token_hash IS NOT ?', [user.id, kept ?? null]);
    const codes = Array.from({ length: BACKUP_CODES }, () => backupCode(random));
    for (const made of codes) addCode.run(user.id, hashOf(made));
    const { id: subject, role, accountId } = user;
    const [atMs, actor] = [clock.now(), actorOf(subject, role)];
    note({ atMs, actor, action: 'user.second-factor-on', accountId, subject });
    return codes;
  });

  return {
    /** A secret for the user to put into an app; it counts once `confirm` has seen a code of it. */
    begin(user: User): Uint8Array {
      const secret = random(TOTP_SECRET_BYTES);
      store.run('UPDATE users SET totp_pending = ? WHERE id = ?', [keys.seal(secret, user.id), user.id]);
      return secret;
    },
    /** The secret that waits for its first code. */
    pending,
    /** Turns it on, ends every other session and gives ten backup codes, shown once; `undefined`: a wrong code. */
    confirm: confirm.immediate,
    /** Takes a code of the app or a backup code; each counts once. */
    isRight(user: User, code: string): boolean {
      const { totp_secret: sealed = null, totp_step = 0 } = row.get(user.id) ?? {};
      const secret = sealed === null ? undefined : keys.unseal(sealed, user.id);
      const step = secret && stepOfCode(secret, code, clock.now(), totp_step);
      if (step !== undefined) return taken.run(step, user.id).changes === 1;
      return useCode.run(user.id, hashOf(code)).changes === 1;
    },
    reset: (user: User, actor: Actor): void => resetSecondFactor(store, user, actor, clock.now()),
  };
}

export type SecondFactor = ReturnType<typeof createSecondFactor>;

/** RFC 6238 as every authenticator app speaks it: SHA-1, six digits, steps of 30 seconds. Its text is what a QR code says. */
export function totpOf(secret: Uint8Array, email: string): TOTP {
  return new TOTP({ secret: secretOf(secret), issuer: ISSUER, label: email });
}

function secretOf(bytes: Uint8Array): Secret {
  return new Secret({ buffer: Uint8Array.from(bytes).buffer });
}

/**
 * The time step that `code` is of, above `afterStep`, at most one away from `nowMs`, since clocks differ and people type;
 * `undefined`: none. A step that was taken once is never taken again (RFC 6238 5.2), so whoever reads a code over a shoulder
 * cannot use it.
 */
function stepOfCode(secret: Uint8Array, code: string, nowMs: number, afterStep: number): number | undefined {
  const totp = totpOf(secret, '');
  const away = totp.validate({ token: code.replaceAll(/\s/g, ''), timestamp: nowMs, window: 1 });
  if (away === null) return undefined;
  const step = totp.counter({ timestamp: nowMs }) + away;
  return step > afterStep ? step : undefined;
}

function backupCode(random: (bytes: number) => Uint8Array): string {
  const text = secretOf(random(BACKUP_CODE_CHARACTERS)).base32.slice(0, BACKUP_CODE_CHARACTERS).toLowerCase();
  return `${text.slice(0, BACKUP_CODE_CHARACTERS / 2)}-${text.slice(BACKUP_CODE_CHARACTERS / 2)}`;
}

/** Typed from paper: case, dashes and spaces are no part of a code. */
function hashOf(code: string): Uint8Array {
  return createHash('sha256').update(code.toLowerCase().replaceAll(/[\s-]/g, '')).digest();
}

/** Turns a user's second factor off and forgets its codes, with its line in the audit log. */
export function resetSecondFactor(store: Store, user: User, actor: Actor, atMs: number): void {
  const { note } = createAudit(store);
  const reset = store.transaction(() => {
    store.run('UPDATE users SET totp_secret = NULL, totp_pending = NULL, totp_step = 0 WHERE id = ?', [
      user.id,
    ]);
    store.run('DELETE FROM backup_codes WHERE user_id = ?', [user.id]);
    note({ atMs, actor, action: 'user.second-factor-off', accountId: user.accountId, subject: user.id });
  });
  reset.immediate();
}
