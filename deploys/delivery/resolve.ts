import type { Clock } from '../../shared/clock.ts';
import { within } from '../watch/deadline.ts';
import { ipBytesFrom } from './addresses.ts';
import type { NetworkPolicy } from './policy.ts';

/** An address that was found public, and the only kind that is connected to. */
export type Pin = Readonly<{ address: string; family: 4 | 6 }>;

/** Where a host leads. `unresolved` is trouble on the way to the answer; `no-address` is the answer. */
export type Vetted =
  | Readonly<{ kind: 'public'; pins: readonly [Pin, ...Pin[]] }>
  | Readonly<{ kind: 'not-public'; addresses: readonly string[] }>
  | Readonly<{ kind: 'no-address' }>
  | Readonly<{ kind: 'unresolved'; code: string }>
  | Readonly<{ kind: 'timed-out' }>;

/** Looks a host up, a name or an IP address, and vets what it leads to. Never rejects; at most 3 s. */
export type Vet = (host: string, signal: AbortSignal) => Promise<Vetted>;

const LOOKUP_MS = 3_000;
const PINS_MAX = 16;
/** Above what the sender has in flight: only a flood of new webhooks reaches it. Each ends by itself within `LOOKUP_MS`. */
const LOOKUPS_MAX = 1_024;

/** Vetting under `policy`; a host that is being looked up is not looked up twice. */
export function createVet(policy: Pick<NetworkPolicy, 'resolve' | 'isPublic'>, clock: Clock): Vet {
  const lookups = new Map<string, Promise<readonly string[]>>();

  function lookup(host: string): Promise<readonly string[]> {
    const running = lookups.get(host);
    if (running !== undefined) return running;
    const started = policy.resolve(host).finally(() => lookups.delete(host));
    lookups.set(host, started);
    return started;
  }

  return async function vet(host, signal) {
    if (ipBytesFrom(host) !== undefined) return vetted([host], policy);
    if (lookups.size >= LOOKUPS_MAX && !lookups.has(host)) return { kind: 'unresolved', code: 'EBUSY' };
    try {
      const answers = await within(clock, LOOKUP_MS, signal, () => lookup(host));
      return answers.kind === 'done' ? vetted(answers.value, policy) : { kind: 'timed-out' };
    } catch (error) {
      const code = codeOf(error);
      return code === 'ETIMEOUT' ? { kind: 'timed-out' } : { kind: 'unresolved', code };
    }
  };
}

/** One address that is not public spoils them all: a receiver has no reason to name one, and an attacker has. */
function vetted(addresses: readonly string[], { isPublic }: Pick<NetworkPolicy, 'isPublic'>): Vetted {
  const isGood = (address: string) => {
    const bytes = ipBytesFrom(address);
    return bytes !== undefined && isPublic(bytes);
  };
  if (!addresses.every(isGood)) return { kind: 'not-public', addresses: addresses.slice(0, PINS_MAX) };
  const [first, ...rest] = addresses.slice(0, PINS_MAX).map(pinOf);
  return first === undefined ? { kind: 'no-address' } : { kind: 'public', pins: [first, ...rest] };
}

function pinOf(address: string): Pin {
  return { address, family: address.includes(':') ? 6 : 4 };
}

/** Such as ESERVFAIL. */
function codeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' && /^[A-Z0-9_]{1,40}$/.test(code) ? code : 'unknown';
}
