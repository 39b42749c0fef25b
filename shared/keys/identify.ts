import type { Clock } from '../clock.ts';
import type { Store } from '../store/open.ts';
import { hashOf, readApiKey } from './api-key.ts';
import type { Carried } from './carrier.ts';
import { createKeyLookup, createKeyUses, type HeldKey, type KeyUses } from './lookup.ts';
import { createKeySource, type Identity, type KeySource, type KnownKey } from './source.ts';

/** Decides who a request's key belongs to. Never throws. */
export type Identify = (carried: Carried) => Identity;

const INVALID: Identity = { kind: 'invalid-key' };
const UNAVAILABLE: Identity = { kind: 'check-unavailable' };

/** `Late`: the answer for a key that only a store across the network knows. */
export type Identifier<Late = never> = Readonly<{
  /** Never throws. */
  identify(carried: Carried): Identity | Late;
  /** The caller of a key that is in memory and good, without asking for any other. */
  recall(carried: Carried): Extract<Identity, { kind: 'known' }> | undefined;
  /** Notices what has changed, and writes when keys were used; call it at least once a second, as revocation promises. */
  refresh(): void;
}>;

export function createIdentify(store: Store, clock: Clock): Identifier {
  return createIdentifier(createKeySource(store), createKeyUses(store, clock), clock, () => UNAVAILABLE);
}

/**
 * Identifies by SHA-256 in `source`, with a memory of keys and of texts that are none in front. Keys in memory go on working
 * when the source does not answer; others are then `check-unavailable`. `lookElsewhere` has a key of a hash looked up
 * elsewhere, and gives what was found to `learn`.
 */
export function createIdentifier<Late>(
  source: KeySource<'elsewhere'>,
  uses: KeyUses,
  clock: Clock,
  lookElsewhere: (hash: Buffer, learn: (key: KnownKey | undefined) => Identity) => Late,
): Identifier<Late> {
  const lookup = createKeyLookup(source, clock);

  function identify(carried: Carried): Identity | Late {
    if (carried.kind === 'none') return { kind: 'missing-key' };
    const key = carried.kind === 'text' ? readApiKey(carried.text) : undefined;
    if (key === undefined) return INVALID;
    const found = lookup.find(key);
    if (found === 'elsewhere') {
      const asOf = lookup.revision();
      return lookElsewhere(hashOf(key), (known) => identityOf(lookup.learn(key, known, asOf)));
    }
    return found === 'unavailable' ? UNAVAILABLE : identityOf(found);
  }

  function identityOf(found: HeldKey | 'unknown'): Identity {
    const nowMs = clock.now();
    if (found === 'unknown' || found.suspended || nowMs >= (found.expiresAtMs ?? Infinity)) return INVALID;
    uses.note(found, nowMs);
    return found.identity;
  }

  function recall(carried: Carried) {
    const found = carried.kind === 'text' ? lookup.recall(carried.text) : undefined;
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
