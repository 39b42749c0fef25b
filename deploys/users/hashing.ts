/** A hash or a look at one that was not begun: as many as there may be are waiting already. */
export type Busy = { readonly kind: 'busy' };

/** Who waits for a hash: who is known goes first, so that no crowd of strangers keeps them out. */
export type Waiter = 'known' | 'stranger';

/** Hashes passwords, a few at a time. */
export type Hashing = Readonly<{
  hash(password: string, by: Waiter): Promise<{ readonly kind: 'hash'; readonly hash: string } | Busy>;
  /** Without a hash to compare with, the same work is done for nothing: an unknown user takes as long as a wrong password. */
  verify(
    password: string,
    hash: string | undefined,
    by: Waiter,
  ): Promise<{ readonly kind: 'verified'; readonly isRight: boolean } | Busy>;
}>;

/** The work itself; `argon2id` is the real one. */
export type HashWork = Readonly<{
  hash(password: string): Promise<string>;
  verify(password: string, hash: string): Promise<boolean>;
}>;

/** argon2id with 64 MiB and two passes, on Bun's own threads. */
export const argon2id: HashWork = {
  hash: (password) => Bun.password.hash(password, { algorithm: 'argon2id', memoryCost: 65_536, timeCost: 2 }),
  verify: (password, hash) => Bun.password.verify(password, hash),
};

/** Each takes 64 MiB while it runs. */
export const HASHES_AT_ONCE = 4;
/** At 0.15 s each; on two cores that had other work as well, the last of a full row waited six seconds. */
export const HASHES_WAITING_MAX = 28;

/** What the hash of nobody's password looks like: made with the parameters above. */
const NOBODY =
  '$argon2id$v=19$m=65536,t=2,p=1$nDfVFcn2tj/3S6yPX7UjFvHLD8UIsD3ovgbWeTsZbDM$LZNuW4cdVxfHAOs0oKltEeOdEwZ0IoHm2veUh1fDvsI';

/** Hashing that never runs more than `HASHES_AT_ONCE` at a time, and says busy when `HASHES_WAITING_MAX` of the caller's kind wait. */
export function createHashing(work: HashWork = argon2id): Hashing {
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
    async hash(password, by) {
      const hash = await inTurn(by, () => work.hash(password));
      return hash === undefined ? { kind: 'busy' } : { kind: 'hash', hash };
    },
    async verify(password, hash, by) {
      const isRight = await inTurn(by, () => work.verify(password, hash ?? NOBODY));
      if (isRight === undefined) return { kind: 'busy' };
      return { kind: 'verified', isRight: isRight && hash !== undefined };
    },
  };
}
