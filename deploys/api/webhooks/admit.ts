import type { Clock } from '../../../shared/clock.ts';
import { extractApiKey } from '../../../shared/keys/carrier.ts';
import type { Identify } from '../../../shared/keys/identify.ts';
import type { By } from '../../audit/actor.ts';
import type { Refusal } from '../refusal.ts';
import type { Enter } from '../request-log.ts';

/** Whose webhooks a request is about and who asks, or why nobody is let in. */
export type Admission = Readonly<{ kind: 'admitted'; by: By }> | Refusal;

/** Lets a request in, once its caller is known and has not asked too often. */
export type Admit = (request: Request) => Admission | Promise<Admission>;

/** Admits by a request that carries no key, such as one from the console; `undefined`: it carries nothing else either. */
export type AdmitBySession = (request: Request) => Promise<Admission | undefined>;

type Deps = Readonly<{ identify: Identify; enter: Enter; clock: Clock; bySession?: AdmitBySession }>;

/**
 * Admits by the account's key, or by a session where no key is carried: a key that is wrong is never made good by a
 * session. The key comes first and its rate second, as with the programs.
 */
export function createAdmit({ identify, enter, clock, bySession }: Deps): Admit {
  return function admit(request) {
    const carried = extractApiKey(request.headers, request.url);
    const identity = identify(carried);
    if (carried.kind === 'none' && bySession !== undefined)
      return bySession(request).then((admission) => admission ?? { kind: 'missing-key' });
    if (identity.kind !== 'known') return identity;
    const { keyId, accountId } = identity.caller;
    const entry = enter(keyId, clock.monotonic());
    if (entry.kind !== 'entered') return entry;
    return { kind: 'admitted', by: { accountId, actor: { kind: 'key', keyId } } };
  };
}
