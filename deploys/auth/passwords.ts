import COMMON from './common-passwords.json' with { type: 'json' };

/** Characters of a password, both included. The upper bound keeps a hash from becoming work for its own sake. */
export const PASSWORD_CHARACTERS = { min: 12, max: 100 } as const;

const common = new Set<string>(COMMON);

/** Complains of a new password of this user, in a sentence; `undefined` when it will do. */
export function passwordComplaint(password: string, email: string): string | undefined {
  const { min, max } = PASSWORD_CHARACTERS;
  const characters = [...password].length;
  if (characters < min) return `Use at least ${min} characters.`;
  if (characters > max) return `Use at most ${max} characters.`;
  const plain = password.toLowerCase();
  if (plain === email || plain === email.split('@')[0]) return "The password can't be your email address.";
  if (common.has(plain) || isOnePiece(plain)) return 'This password is too common. Choose another one.';
  return undefined;
}

/** Whether the text is one short piece over and over: "aaaaaaaaaaaa", "abcabcabcabc". */
function isOnePiece(text: string): boolean {
  return /^(.{1,4}?)\1+.{0,3}$/su.test(text);
}

/** Letters and digits that are not mistaken for one another. */
const ALPHABET = 'abcdefghjkmnpqrstuvwxyz23456789A';
const [GROUPS, GROUP] = [4, 5];

/** A password for somebody's first login, 100 bits in groups of five: `k7m2p-…`. `random` gives n uniform bytes. */
export function makePassword(random: (bytes: number) => Uint8Array): string {
  // 32 letters: a byte's lower five bits are one of them, each as likely.
  const letters = [...random(GROUPS * GROUP)].map((byte) => ALPHABET[byte & 31]).join('');
  return Array.from({ length: GROUPS }, (_, i) => letters.slice(i * GROUP, (i + 1) * GROUP)).join('-');
}

/** A hash was neither made nor compared: as many as there may be are waiting already. */
export type Busy = { readonly kind: 'busy' };

/** Whom a hash is for: known users go first, so that no crowd of strangers keeps them out. */
export type Waiter = 'known' | 'stranger';

/** argon2id with 64 MiB and two passes, on Bun's own threads. */
export const argon2id = {
  hash: (password: string) =>
    Bun.password.hash(password, { algorithm: 'argon2id', memoryCost: 65_536, timeCost: 2 }),
  verify: (password: string, hash: string) => Bun.password.verify(password, hash),
};
export type HashWork = typeof argon2id;

/** Each takes 64 MiB while it runs. */
export const HASHES_AT_ONCE = 4;
/** At 0.15 s each; on two cores that had other work as well, the last of a full row waited six seconds. */
export const HASHES_WAITING_MAX = 28;

/** The hash that a password is compared with when there is no user: made with the parameters above. */
const NOBODY =
  '$argon2id$v=19$m=65536,t=2,p=1$nDfVFcn2tj/3S6yPX7UjFvHLD8UIsD3ovgbWeTsZbDM$LZNuW4cdVxfHAOs0oKltEeOdEwZ0IoHm2veUh1fDvsI';

/** Hashing that never runs more than `HASHES_AT_ONCE` at a time, and says busy when `HASHES_WAITING_MAX` of the caller's kind wait. */
export function createHashing(work: HashWork = argon2id) {
  let running = 0;
  const waiting: Readonly<Record<Waiter, (() => void)[]>> = { known: [], stranger: [] };

  async function inTurn<T>(by: Waiter, act: () => Promise<T>): Promise<T | undefined> {
    if (running >= HASHES_AT_ONCE) {
      if (waiting[by].length >= HASHES_WAITING_MAX) return undefined;
      await new Promise<void>((resolve) => waiting[by].push(resolve)); // the turn is handed on, so `running` stays
    } else running += 1;
    try {
      return await act();
    } finally {
      const next = waiting.known.shift() ?? waiting.stranger.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  }

  return {
    async hash(password: string, by: Waiter): Promise<Readonly<{ kind: 'hash'; hash: string }> | Busy> {
      const hash = await inTurn(by, () => work.hash(password));
      return hash === undefined ? { kind: 'busy' } : { kind: 'hash', hash };
    },
    /** Without a hash to compare with, the same work is done for nothing: an unknown user takes as long as a wrong password. */
    async verify(
      password: string,
      hash: string | undefined,
      by: Waiter,
    ): Promise<Readonly<{ kind: 'right' } | { kind: 'wrong' }> | Busy> {
      const isRight = await inTurn(by, () => work.verify(password, hash ?? NOBODY));
      if (isRight === undefined) return { kind: 'busy' };
      return { kind: isRight && hash !== undefined ? 'right' : 'wrong' };
    },
  };
}

export type Hashing = ReturnType<typeof createHashing>;
