/** Who changes a user: a person at the console, by id, or whoever may run commands on the host. */
export type UserActor =
  { readonly kind: 'user' | 'operator'; readonly userId: string } | { readonly kind: 'command-line' };

/** A change of a user for the audit log. `subject` is the user's id; no member is secret. */
export type UserNote = Readonly<{
  atMs: number;
  actor: UserActor;
  action: `user.${string}`;
  accountId?: number | undefined;
  subject: string;
  detail?: Readonly<Record<string, string>>;
}>;

/** Writes the note down; called inside the transaction of the change itself. */
export type NoteUser = (note: UserNote) => void;
