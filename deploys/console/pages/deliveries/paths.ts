import type { PageAccount } from '../../asked.ts';

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
