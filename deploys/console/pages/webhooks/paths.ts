import type { PageAccount } from '../../asked.ts';

/** Where the webhooks of an account are. */
export function webhooksPath({ id }: Pick<PageAccount, 'id'>): string {
  return `/accounts/${id}/webhooks`;
}

/** The page of one webhook. */
export function webhookPath(account: Pick<PageAccount, 'id'>, webhookId: string): string {
  return `${webhooksPath(account)}/${webhookId}`;
}
