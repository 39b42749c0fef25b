import { internetPolicy, type NetworkPolicy } from '../../../deploys/delivery/policy.ts';
import { createSender } from '../../../deploys/delivery/send.ts';
import type { Sent } from '../../../deploys/outbox/outcome.ts';
import { type Clock, systemClock } from '../../../shared/clock.ts';
import { createVirtualClock } from '../../fakes/chain-clock.ts';
import { createAuthority } from '../../started/receiver-certificates.ts';
import { type ReceiverOptions, startReceiver } from '../../fakes/receiver.ts';

/** The name of the receivers in tests. */
export const NAME = 'hooks.example.com';
export const AUTHORITY = createAuthority();
export const GOOD = AUTHORITY.issue({ dns: [NAME], ips: ['127.0.0.1'] });
export const BODY = Buffer.from('{"event":"ping"}');

/** What tests relax, by constructor: loopback is public, every name leads to it, and the authority above is trusted. */
function loopbackPolicy(change: Partial<NetworkPolicy> = {}): NetworkPolicy {
  return {
    ...internetPolicy([]),
    resolve: () => Promise.resolve(['127.0.0.1']),
    isPublic: (address) => address.startsWith('127.'),
    ca: AUTHORITY.cert,
    ...change,
  };
}

/** One attempt against `url`. */
export function sendTo(
  url: URL,
  change: Readonly<{ policy?: Partial<NetworkPolicy>; clock?: Clock; signal?: AbortSignal }> = {},
): Promise<Sent> {
  const send = createSender(loopbackPolicy(change.policy), change.clock ?? systemClock);
  const headers = { 'content-type': 'application/json', 'x-service-event': 'ping' };
  return send({ url, headers, body: BODY }, change.signal ?? new AbortController().signal);
}

/** A receiver with a good certificate, unless told otherwise. */
export function startGood(options: ReceiverOptions) {
  return startReceiver({ certificate: GOOD, ...options });
}

/** The part of an outcome that does not depend on the time or the port. */
export function gist(sent: Sent): string {
  if (sent.kind === 'failed') return `${sent.code}: ${sent.detail}`;
  return `${sent.status} ${sent.bodyKind} ${Buffer.from(sent.body).toString('latin1')}`.trim();
}

/**
 * A clock that stands still, and tells when a phase of the only attempt on it has ended: the stopwatch reads the time
 * once at the start and once at the end of each phase.
 */
export function createAttemptClock() {
  const clock = createVirtualClock();
  let readings = 0;
  const READINGS = { dnsMs: 2, connectMs: 3, tlsMs: 4, firstByteMs: 5 } as const;
  return {
    ...clock,
    monotonic: () => (readings++, clock.monotonic()),
    async ended(phase: keyof typeof READINGS): Promise<void> {
      while (readings < READINGS[phase]) await new Promise((resolve) => setImmediate(resolve));
    },
  };
}
