import type { Enter } from '../../api/request-log.ts';
import type { AccountDeliveries } from '../../outbox/account-deliveries.ts';
import type { History } from '../../programs/history.ts';
import type { ProgramShown, ProgramWish } from '../../programs/list.ts';
import type { WebhookDay, WebhookHealth } from '../../webhooks/webhook-health.ts';
import type { Webhooks } from '../../webhooks/webhooks.ts';

/** What the pages of programs, webhooks and deliveries stand on. */
export type WebhookPageDeps = Readonly<{
  webhooks: Webhooks;
  healthOf(webhookId: string, nowMs: number): WebhookHealth;
  /** The part of it that a list shows. */
  dayOf(webhookId: string, nowMs: number): WebhookDay;
  deliveries: AccountDeliveries;
  programs(wish: ProgramWish, nowMs: number): readonly ProgramShown[];
  history: Pick<History, 'of'>;
  /** The rate of looking hosts up: a user has that of a key. */
  enter(userId: string): ReturnType<Enter<string>>;
}>;
