import type { Clock } from '../clock.ts';
import type { Store } from '../store/open.ts';
import { hashOf, type KeyId, readApiKey } from './api-key.ts';
import type { Carried } from './carrier.ts';
import { createKeyLookup } from './lookup.ts';
import { createKeySource, type KeySource, type KnownKey } from './source.ts';
import { createKeyUses, type KeyUses } from './uses.ts';

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

export type Identifier = Readonly<{
  identify: Identify;
  /** The caller of a key that is in memory and good, without asking for any other. */
  recall(carried: Carried): Extract<Identity, { kind: 'known' }> | undefined;
  /** Notices what has changed, and writes when keys were used; call it at least once a second, as revocation promises. */
  refresh(): void;
}>;

/** Identifies by the keys of `store`. */
export function createIdentify(store: Store, clock: Clock): Identifier {
  return createIdentifier(createKeySource(store), createKeyUses(store, clock), clock);
}

/**
 * Identifies by SHA-256 in `source`, with a memory of known and unknown keys in front. Keys in memory go on working
 * when the source does not answer; others are then `check-unavailable`.
 */
export function createIdentifier(source: KeySource, uses: KeyUses, clock: Clock): Identifier {
  const lookup = createKeyLookup(source, clock);

  function identify(carried: Carried): Identity {
    if (carried.kind === 'none') return MISSING;
    if (carried.kind === 'conflict') return INVALID;
    const key = readApiKey(carried.text);
    return key === undefined ? INVALID : identityOf(lookup.find(hashOf(key)));
  }

  function identityOf(found: ReturnType<typeof lookup.find>): Identity {
    if (found === 'unavailable') return UNAVAILABLE;
    const nowMs = clock.now();
    if (found === 'unknown' || !isActive(found, nowMs)) return INVALID;
    uses.note(found, nowMs);
    return found.identity;
  }

  function recall(carried: Carried) {
    const key = carried.kind === 'text' ? readApiKey(carried.text) : undefined;
    const found = key === undefined ? undefined : lookup.recall(hashOf(key));
    if (found === undefined) return undefined;
    const identity = identityOf(found);
    return identity.kind === 'known' ? identity : undefined;
  }

  function refresh(): void {
    lookup.refresh();
    uses.write();
  }

  return { identify, recall, refresh };
}

function isActive({ suspended, expiresAtMs }: KnownKey, nowMs: number): boolean {
  return !suspended && (expiresAtMs === undefined || nowMs < expiresAtMs);
}
