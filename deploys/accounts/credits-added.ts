import type { Store } from '../../shared/store/open.ts';

/** Credits to add and why; `once` names the addition, so that a form sent twice adds once. */
export type Addition = Readonly<{ credits: number; reason: string; once: string }>;

export type CreditsAdded = Readonly<{
  /** What was added to the account under this name. */
  find(accountId: number, once: string): number | undefined;
  put(accountId: number, addition: Addition, atMs: number): void;
}>;

/** A quarter of the safe integers: granted is spent plus left and must stay exact. */
export const CREDITS_MAX = Math.floor(Number.MAX_SAFE_INTEGER / 4);

const REASON = /^[^\p{C}\p{Zl}\p{Zp}]{1,200}$/u;

/** Whether `text` can be a reason: 1 to 200 printable characters, no space at either end. */
export function isReason(text: string): boolean {
  return REASON.test(text) && text.trim() === text;
}

/** What was added to accounts, in `store`. */
export function createCreditsAdded(store: Store): CreditsAdded {
  const find = store.prepare<{ credits: number }, [number, string]>(
    'SELECT credits FROM credits_added WHERE account_id = ? AND once = ?',
  );
  const put = store.prepare<null, [number, string, number, string, number]>(
    'INSERT INTO credits_added (account_id, once, credits, reason, at_ms) VALUES (?, ?, ?, ?, ?)',
  );
  return {
    find: (accountId, once) => find.get(accountId, once)?.credits,
    put: (accountId, { credits, reason, once }, atMs) => void put.run(accountId, once, credits, reason, atMs),
  };
}
