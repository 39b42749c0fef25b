import type { Clock } from '../../shared/clock.ts';
import type { Claim } from '../outbox/claim.ts';
import type { Result } from '../outbox/finish.ts';
import { eventHeaders, type Secrets } from './headers.ts';
import type { Send } from './send.ts';
import { verdictOf } from './verdict.ts';

/** The secrets a webhook signs with at `atMs`, Unix milliseconds. Throws when they cannot be unsealed. */
export type SecretsOf = (webhookId: string, atMs: number) => Secrets;

export type AttemptDeps = Readonly<{
  send: Send;
  secretsOf: SecretsOf;
  clock: Clock;
  /** Hears of what should not have happened: an attempt that could not be made. */
  noteBroken(error: unknown): void;
}>;

/**
 * One attempt of what was claimed: signed with the secrets of this moment, sent to the URL of this moment. Never
 * rejects: what breaks inside this service is a failed attempt too, so it is bounded as those are.
 */
export async function attempt(claim: Claim, deps: AttemptDeps, signal: AbortSignal): Promise<Result> {
  const { send, secretsOf, clock } = deps;
  const { deliveryId, eventKind, body } = claim;
  try {
    const signedAt = Math.floor(claim.claimedAtMs / 1_000);
    const headers = eventHeaders(
      { deliveryId, eventKind, body, signedAt },
      secretsOf(claim.webhookId, claim.claimedAtMs),
    );
    const sent = await send({ url: new URL(claim.url), headers, body }, signal);
    return { claim, verdict: verdictOf(sent), sent, headers, endedAtMs: clock.now() };
  } catch (error) {
    deps.noteBroken(error);
    const verdict = { kind: 'failed', error: 'internal_error' } as const;
    return { claim, verdict, sent: undefined, headers: undefined, endedAtMs: clock.now() };
  }
}
