import type { Clock } from '../../shared/clock.ts';
import type { Carried } from '../../shared/keys/carrier.ts';
import type { Identifier } from '../../shared/keys/identify.ts';
import type { Identity } from '../../shared/keys/source.ts';

/** So many in so long; a caller with a wrong key in its config asks far less, a guesser far more. */
const FAILURES_MAX = 100;
const WINDOW_MS = 10_000;

/** Between two look-ups for a barred address: a hundred a second. */
const LOOK_MS = 10;

/** Addresses remembered; the one that failed longest ago goes first. At most about 1 KB each. */
const ADDRESSES_MAX = 10_000;

/** The instants of the last failures from one address, oldest first, and when a key from there was last looked up. */
type Failures = { instants: number[]; lookedMs: number };

/** Requests with failed keys by address, counted exactly over any ten seconds. */
export function createFailedKeys(clock: Clock) {
  const addresses = new Map<string, Failures>();

  function failuresOf(name: string): Failures {
    const failures = addresses.get(name) ?? { instants: [], lookedMs: -Infinity };
    failures.instants = failures.instants.filter((instant) => instant + WINDOW_MS > clock.monotonic());
    return failures;
  }

  return {
    /** Until the address may try another key, in milliseconds; `undefined`: now. */
    waitMs(address: string): number | undefined {
      const { instants } = failuresOf(neighbourhoodOf(address));
      const [oldest] = instants;
      const isBarred = oldest !== undefined && instants.length >= FAILURES_MAX;
      return isBarred ? oldest + WINDOW_MS - clock.monotonic() : undefined;
    },
    /** Whether a key from a barred address may be looked up all the same: behind it there may be many callers. */
    mayLook(address: string): boolean {
      const failures = failuresOf(neighbourhoodOf(address));
      if (clock.monotonic() < failures.lookedMs + LOOK_MS) return false;
      failures.lookedMs = clock.monotonic();
      return true;
    },
    note(address: string): void {
      const name = neighbourhoodOf(address);
      const failures = failuresOf(name);
      // One that is barred is not noted again, so the list does not grow beyond what bars it.
      if (failures.instants.length < FAILURES_MAX) failures.instants.push(clock.monotonic());
      addresses.delete(name);
      const [oldest] = addresses.keys();
      if (oldest !== undefined && addresses.size >= ADDRESSES_MAX) addresses.delete(oldest);
      addresses.set(name, failures); // now the last to go
    },
  };
}

const MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

/** Makes one of the addresses that one caller can have many of: an IPv6 address by its /64, an IPv4 address, also a mapped one, by itself. */
export function neighbourhoodOf(address: string): string {
  if (!address.includes(':')) return address;
  const [, mapped] = MAPPED.exec(address) ?? [];
  if (mapped !== undefined) return mapped;
  const [head = '', tail] = address.split('::');
  const groups = head === '' ? [] : head.split(':');
  const behind = tail === undefined || tail === '' ? [] : tail.split(':');
  while (groups.length < 4 && groups.length + behind.length < 8) groups.push('0');
  return [...groups, ...behind]
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':');
}

/** The address has had too many failed keys; it may try another one in `waitMs`. */
export type Barred = { readonly kind: 'too-many-failed-keys'; readonly waitMs: number };

type FoundKey = Identity | Barred;

/** A request's connection; its address is `undefined` when that is closed. */
type Connected = Readonly<{ address: string | undefined }>;

/** Decides who a request's key belongs to. Never throws. */
export type IdentifyCaller = (carried: Carried, from: Connected) => FoundKey | Promise<FoundKey>;

/**
 * Identifies as `identify`, and bars addresses, which only the connection shows, that try many keys: from those, only good
 * keys pass, and of keys that are not in memory a hundred a second are looked up. A key in memory is good from anywhere.
 */
export function createAuth(
  { identify, recall }: Pick<Identifier<Promise<Identity>>, 'identify' | 'recall'>,
  failed: ReturnType<typeof createFailedKeys>,
): IdentifyCaller {
  return function identifyCaller(carried, from) {
    if (carried.kind === 'none') return identify(carried);
    return recall(carried) ?? lookedUp(carried, from.address);
  };

  async function lookedUp(carried: Carried, address?: string): Promise<FoundKey> {
    if (address === undefined) return identify(carried);
    const waitMs = failed.waitMs(address);
    const barred = waitMs === undefined ? undefined : ({ kind: 'too-many-failed-keys', waitMs } as const);
    if (barred !== undefined && !failed.mayLook(address)) return barred;
    const identity = await identify(carried);
    if (barred !== undefined && identity.kind !== 'known') return barred;
    if (identity.kind === 'invalid-key') failed.note(address);
    return identity;
  }
}
