import { deliveryRecord } from '../../deploys/api/webhook-answers.ts';
import type { AccountDelivery } from '../../deploys/outbox/list.ts';
import { type Command, failed } from '../command.ts';
import { graceMsFrom } from '../grace.ts';
import { isoOf, tableOf } from '../table.ts';
import { webhookOutcome } from '../webhook-lines.ts';
import { withWebhooks } from '../with-webhooks.ts';

const SHOWN = 50;

export const webhookTest: Command = {
  words: 'webhook test',
  operands: ['ACCOUNT', 'WEBHOOK_ID'],
  options: ['config', 'json'],
  summary: 'Send a test to a webhook; webhook deliveries shows how it ends.',
  act: (invocation) =>
    withWebhooks(invocation, ({ webhooks, by }) => {
      const id = invocation.operands[1] ?? '';
      return webhookOutcome(webhooks.sendTest(by, id), id);
    }),
};

export const webhookDeliveries: Command = {
  words: 'webhook deliveries',
  operands: ['ACCOUNT', '[WEBHOOK_ID]'],
  options: ['config', 'json'],
  summary: `List the newest ${SHOWN} deliveries of an account, or of one webhook.`,
  act: (invocation) =>
    withWebhooks(invocation, ({ deliveries, by }) => {
      const webhookId = invocation.operands[1];
      const wish = { limit: SHOWN, ...(webhookId !== undefined && { webhookId }) };
      const { rows } = deliveries.page(by.accountId, wish);
      const head = ['DELIVERY ID', 'CREATED', 'HOST', 'EVENT', 'STATE', 'ATTEMPTS', 'ANSWER'];
      return {
        kind: 'done',
        objects: rows.map(deliveryRecord),
        text: tableOf(head, rows.map(cellsOf), 'No deliveries yet.'),
      };
    }),
};

export const webhookResend: Command = {
  words: 'webhook resend',
  operands: ['ACCOUNT', 'DELIVERY_ID'],
  options: ['config', 'json'],
  summary: 'Attempt a delivery once more, with the same id and body.',
  act: (invocation) =>
    withWebhooks(invocation, ({ webhooks, deliveries, by }) => {
      const id = invocation.operands[1] ?? '';
      const webhookId = deliveries.find(by.accountId, id)?.webhookId ?? '';
      return webhookOutcome(webhooks.resendOne(by, webhookId, id), id);
    }),
};

export const webhookResendFailed: Command = {
  words: 'webhook resend-failed',
  operands: ['ACCOUNT', 'WEBHOOK_ID'],
  options: ['since', 'config', 'json'],
  summary: 'Attempt every failed delivery of the last --since (default 24h; 1h, 7d) once more.',
  act: (invocation) =>
    withWebhooks(invocation, ({ webhooks, by, nowMs }) => {
      const id = invocation.operands[1] ?? '';
      const since = invocation.values.since ?? '24h';
      const spanMs = graceMsFrom(since);
      if (spanMs === undefined) return failed(`--since wants a time such as 1h, 24h or 7d, not "${since}".`);
      return webhookOutcome(webhooks.resendAllFailed(by, id, nowMs - spanMs), id);
    }),
};

function cellsOf(row: AccountDelivery): string[] {
  const { id, createdAtMs, url, eventKind, state, attempts, lastStatus, lastError } = row;
  const answer = lastStatus === null ? (lastError ?? '-') : String(lastStatus);
  return [id, isoOf(createdAtMs), new URL(url).host, eventKind, state, String(attempts), answer];
}
