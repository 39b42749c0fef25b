/** The list of accounts. */
export const ACCOUNTS_PATH = '/operator/accounts';
export const AUDIT_PATH = '/operator/audit';

/** An operator's page of an account. */
export function accountPath(accountId: number): string {
  return `${ACCOUNTS_PATH}/${accountId}`;
}

/** An operator's page of a user. */
export function userPath(userId: string): string {
  return `/operator/users/${encodeURIComponent(userId)}`;
}

/** The id in a path or query, spelled the one way ids are; `undefined` for anything else. */
export function idFrom(text: string | null | undefined): number | undefined {
  return text && /^[1-9]\d{0,14}$/.test(text) ? Number(text) : undefined;
}
