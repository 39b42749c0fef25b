import type { Clock } from '../clock.ts';
import type { Store } from '../store/open.ts';
import { hashOf, type KeyId, readApiKey } from './api-key.ts';
import type { Carried } from './carrier.ts';
import { createKeyLookup, type KnownKey } from './lookup.ts';

/** Who is calling. `plan` names the account's plan; an account without one reads only the program API. */
export type Caller = Readonly<{
  keyId: KeyId;
  accountId: number;
  plan: string | undefined;
  /** Credits ever given to the account; `undefined`: its plan's allowance. Meaningful only on a plan with credits. */
  creditsGranted: number | undefined;
}>;

/** Unknown, revoked, expired and contradictory keys are one answer, so that a guess learns nothing (spec 5.3). */
export type Identity =
  | { readonly kind: 'known'; readonly caller: Caller }
  | { readonly kind: 'missing-key' }
  | { readonly kind: 'invalid-key' }
  | { readonly kind: 'check-unavailable' };

/** Decides who a request's key belongs to. Never throws. */
export type Identify = (carried: Carried) => Identity;

const MISSING: Identity = { kind: 'missing-key' };
const INVALID: Identity = { kind: 'invalid-key' };
const UNAVAILABLE: Identity = { kind: 'check-unavailable' };

/**
 * Identifies by SHA-256 in `store`, with a memory of known and unknown keys in front. Keys in memory go on working
 * when the store does not answer; others are then `check-unavailable`. `refresh` forgets everything that may have
 * changed; call it at least once a second, as revocation promises.
 */
export function createIdentify(
  store: Store,
  clock: Clock,
): Readonly<{ identify: Identify; refresh(): void }> {
  const lookup = createKeyLookup(store);

  function identify(carried: Carried): Identity {
    if (carried.kind === 'none') return MISSING;
    if (carried.kind === 'conflict') return INVALID;
    const key = readApiKey(carried.text);
    if (key === undefined) return INVALID;
    const found = lookup.find(hashOf(key));
    if (found === 'unavailable') return UNAVAILABLE;
    return found === 'unknown' || !isActive(found, clock.now()) ? INVALID : found.identity;
  }

  return { identify, refresh: lookup.refresh };
}

function isActive({ suspended, expiresAtMs }: KnownKey, nowMs: number): boolean {
  return !suspended && (expiresAtMs === undefined || nowMs < expiresAtMs);
}
