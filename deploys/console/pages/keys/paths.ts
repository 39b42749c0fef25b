import type { PageAccount } from '../../asked.ts';

/** The keys of an account. */
export function keysPath({ id }: Pick<PageAccount, 'id'>): string {
  return `/accounts/${id}/keys`;
}

/** One of them. */
export function keyPath(account: Pick<PageAccount, 'id'>, keyId: string): string {
  return `${keysPath(account)}/${encodeURIComponent(keyId)}`;
}
