import type { Carried } from '../../shared/keys/carrier.ts';
import type { Identifier, Identity } from '../../shared/keys/identify.ts';
import type { FailedKeys } from '../limits/failed-keys.ts';

/** Tells the address at the other end of a request's connection; `null` when it is closed, or has none. */
export type Peers = Readonly<{ requestIP(request: Request): Readonly<{ address: string }> | null }>;

/** The address has had too many failed keys; it may try another one in `waitMs`. */
export type Barred = { readonly kind: 'too-many-failed-keys'; readonly waitMs: number };

/** Decides who a request's key belongs to. Never throws. */
export type IdentifyCaller = (carried: Carried, request: Request, peers: Peers) => Identity | Barred;

/**
 * Identifies as `identify`, and bars addresses that try many keys: from those, only good keys pass, and of keys that are
 * not in memory a few a second are looked up. A key in memory is good from anywhere, and costs no look at the address;
 * which address it is, only the connection says, and no header.
 */
export function createIdentifyCaller(
  { identify, recall }: Pick<Identifier, 'identify' | 'recall'>,
  failed: FailedKeys,
): IdentifyCaller {
  return function identifyCaller(carried, request, peers) {
    const known = recall(carried);
    if (known !== undefined || carried.kind === 'none') return known ?? identify(carried);
    const address = peers.requestIP(request)?.address;
    if (address === undefined) return identify(carried);
    const waitMs = failed.waitMs(address);
    if (waitMs !== undefined) {
      const found = failed.mayLook(address) ? identify(carried) : undefined;
      return found?.kind === 'known' ? found : { kind: 'too-many-failed-keys', waitMs };
    }
    const identity = identify(carried);
    if (identity.kind === 'invalid-key') failed.note(address);
    return identity;
  };
}
