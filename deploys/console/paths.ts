import type { PageAccount } from './context.ts';

/**
 * A backslash becomes a slash in a browser, a tab or newline vanishes, and beyond ASCII a header carries no text: whoever
 * means such a character writes it as `%…`.
 */
const MISLEADING = /[^!-~]|\\/;

/** `text` when it is a path on this origin, with its query, in printable ASCII; never another host, a scheme or a relative path. */
export function ownPath(text: string | null | undefined): string | undefined {
  if (!text?.startsWith('/') || text.startsWith('//') || MISLEADING.test(text)) return undefined;
  return text;
}

/** Where a login is ended. */
export const LOGOUT_PATH = '/logout';

/** The keys of an account. */
export function keysPath({ id }: Pick<PageAccount, 'id'>): string {
  return `/accounts/${id}/keys`;
}

/** One of them. */
export function keyPath(account: Pick<PageAccount, 'id'>, keyId: string): string {
  return `${keysPath(account)}/${encodeURIComponent(keyId)}`;
}

/** Where the webhooks of an account are. */
export function webhooksPath({ id }: Pick<PageAccount, 'id'>): string {
  return `/accounts/${id}/webhooks`;
}

/** The page of one webhook. */
export function webhookPath(account: Pick<PageAccount, 'id'>, webhookId: string): string {
  return `${webhooksPath(account)}/${webhookId}`;
}

/** Where the deliveries of an account are, narrowed by `query`. */
export function deliveriesPath(
  { id }: Pick<PageAccount, 'id'>,
  query: Readonly<Record<string, string>> = {},
): string {
  const text = new URLSearchParams(query).toString();
  return `/accounts/${id}/deliveries${text === '' ? '' : `?${text}`}`;
}

/** The page of one delivery. */
export function deliveryPath(account: Pick<PageAccount, 'id'>, deliveryId: string): string {
  return `${deliveriesPath(account)}/${deliveryId}`;
}

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
