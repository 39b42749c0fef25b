import type { KeyId } from '../../shared/keys/api-key.ts';

/**
 * Who changes something: an account's key, a person of the account at the console, an operator at the console, or
 * whoever may run commands on the host. `userId` names a person; none of the members is secret.
 */
export type Actor =
  | { readonly kind: 'key'; readonly keyId: KeyId }
  | { readonly kind: 'user' | 'operator'; readonly userId: string }
  | { readonly kind: 'command-line' };

/** A change's account and who makes it, which are two things: an operator changes what is another's. */
export type By = Readonly<{ accountId: number; actor: Actor }>;

/** A person at the console as the one who acts. */
export function actorOf(userId: string, role: 'operator' | 'customer'): Actor {
  return { kind: role === 'operator' ? 'operator' : 'user', userId };
}

/** The id that goes with the kind: a key's, a person's, or none. */
export function actorId(actor: Actor): string | undefined {
  if (actor.kind === 'command-line') return undefined;
  return actor.kind === 'key' ? actor.keyId : actor.userId;
}
