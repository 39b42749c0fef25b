import type { DeploysAt } from '../usage/push.ts';
import type { MirrorState } from './mirror.ts';

/** Where this host's gateways read accounts and keys. `unknown`: it cannot be said yet, and no key is refused on it. */
export type Choice = 'local' | 'mirror' | 'unknown';

/** Only a Redis that named this very database can tell that deploys reads it; the own one is also chosen for want of another. */
export function deploysAt(choice: Choice, seen: MirrorState | undefined, own: OwnAccounts): DeploysAt {
  if (choice === 'mirror') return 'elsewhere';
  const holder = seen?.holder ?? null;
  return choice === 'local' && holder !== null && own.hasPublisher(holder) ? 'here' : 'unknown';
}

/** What this host's own accounts database says of itself. */
export type OwnAccounts = Readonly<{
  origin: string;
  /** Whether this very file, and no copy of it, was published by the start of deploys with this token. */
  hasPublisher(token: string): boolean;
  /** Whether this very file was ever published. */
  wasPublished(): boolean;
  /** Whether there is any account in it. */
  hasAccounts(): boolean;
}>;

/**
 * The own database while nobody publishes or it is the one that is published; else the mirror. Without an account of its
 * own, one of which nobody publishes yet may be a host whose accounts are still to come. A mirror that is not
 * there whole yet is stood in for by an older copy of the same database, and otherwise by nothing.
 */
export function choiceOf(seen: MirrorState, own: OwnAccounts): Choice {
  const { origin, holder, nobody, complete } = seen;
  if (origin === null || holder === null)
    return own.wasPublished() || (nobody === 1 && own.hasAccounts()) ? 'local' : 'unknown';
  if (own.hasPublisher(holder)) return 'local';
  if (complete === 1) return 'mirror';
  return origin === own.origin ? 'local' : 'unknown';
}
