/**
 * Where published accounts and keys are in Redis. One hash tag for all of it, so that one script may touch several, and
 * no key material: of a key its hash and id stand in values alone.
 *
 * `head` is a hash: `origin` (whose accounts), `holder` (the start of deploys that published last), `epoch`, `seq` (all
 * changes up to this revision are in the epoch's rows), `config`, `terms`, `termsId` (plans and prices), and `revoked` (keys that
 * are revoked and whose rows may still be on their way).
 */
export const HEAD = '{sluice:accounts}:head';

/** Held by the one deploys that publishes, for a few seconds at a time. */
export const LEASE = '{sluice:accounts}:lease';

/** When keys were used last: a sorted set of key ids by Unix milliseconds, until deploys has taken them. */
export const USES = '{sluice:accounts}:uses';

/** Told that something was published; whoever does not hear it looks by itself a moment later. */
export const CHANGED = '{sluice:accounts}:changed';

/**
 * The stream of an epoch: one entry per account and key under the id `REVISION-0` of its latest change, so that reading
 * on from a revision gives what has changed since, and from 0 everything.
 */
export function rowsOf(epoch: string): string {
  return `{sluice:accounts}:rows:${epoch}`;
}
