import { createHmac } from 'node:crypto';
import { retryAfterSeconds } from '../../shared/clock.ts';

/** How many attempts there may be at once, and how long it takes until one more is allowed. */
export type Pace = Readonly<{ burst: number; refillMs: number }>;

export type Attempt =
  | { readonly kind: 'allowed' }
  /** Whole seconds, at least 1, after which the same attempt is allowed if no other one is made. */
  | { readonly kind: 'too-many'; readonly retryAfterSeconds: number };

/** 16 bytes each. */
const COUNTERS = 16_384;
const KEY_BYTES = 32;

/**
 * Leaky buckets in a table of fixed size: a name's counter follows from a keyed hash, so that nobody can choose names to
 * push another's count out, and memory is the same under any attack. Two names that share a counter are slowed together.
 * `random` gives n uniform bytes.
 */
export function createAttempts({ burst, refillMs }: Pace, random: (bytes: number) => Uint8Array) {
  const key = random(KEY_BYTES);
  const levels = new Float64Array(COUNTERS);
  const seenAtMs = new Float64Array(COUNTERS);
  const counterOf = (name: string) =>
    createHmac('sha256', key).update(name).digest().readUInt32LE() % COUNTERS;

  return {
    take(name: string, nowMs: number): Attempt {
      const counter = counterOf(name);
      const passedMs = Math.max(0, nowMs - (seenAtMs[counter] ?? 0)); // a clock that steps back gives nothing
      const level = Math.max(0, (levels[counter] ?? 0) - passedMs / refillMs);
      const above = level + 1 - burst;
      if (above > 0) return { kind: 'too-many', retryAfterSeconds: retryAfterSeconds(above * refillMs) };
      levels[counter] = level + 1;
      seenAtMs[counter] = nowMs;
      return { kind: 'allowed' };
    },
    /** Gives back what `take` took, when the attempt was a good one. */
    giveBack(name: string): void {
      const counter = counterOf(name);
      levels[counter] = Math.max(0, (levels[counter] ?? 0) - 1);
    },
  };
}

/** Finds where a request comes from; `undefined` where nothing says it. */
export type AddressOf = (request: Request) => string | undefined;

const CHARACTERS_MAX = 64;

/** Remembers the connection's address of each request while it is answered. */
export function createClientAddresses(header: string | undefined) {
  const addresses = new WeakMap<Request, string>();
  return {
    note(request: Request, address: string | undefined): void {
      if (address !== undefined) addresses.set(request, address);
    },
    /** The last address of the header, which the proxy in front wrote; the client may have sent those before it. */
    of: ((request) => {
      const said = header && request.headers.get(header)?.split(',').at(-1)?.trim().slice(0, CHARACTERS_MAX);
      return said === undefined || said === '' ? addresses.get(request) : said;
    }) satisfies AddressOf as AddressOf, // the parameter's type comes from it, the result's too
  };
}
