import type { Note } from '../audit/audit.ts';

/** What is done to accounts, whose subject is the account's id, and to keys, whose subject is the key's. */
export type ChangeAction =
  | 'account.create'
  | 'account.rename'
  | 'account.plan'
  | 'account.credits.set'
  | 'account.credits.add'
  | 'account.suspend'
  | 'account.resume'
  | 'key.create'
  | 'key.rename'
  | 'key.rotate'
  | 'key.revoke';

/** One change, with its figures and without any secret. */
export type ChangeNote = Note & Readonly<{ action: ChangeAction }>;

/** Notes a change inside the change's own transaction: when it throws, the change did not happen. */
export type NoteChange = (note: ChangeNote) => void;
