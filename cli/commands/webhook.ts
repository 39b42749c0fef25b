import { webhookRecord } from '../../deploys/api/webhook-answers.ts';
import type { Settings } from '../../deploys/webhooks/settings.ts';
import type { Webhook } from '../../deploys/webhooks/webhook.ts';
import { type Command, failed, type Invocation } from '../command.ts';
import { isoOf, tableOf } from '../table.ts';
import { webhookOutcome } from '../webhook-lines.ts';
import { withWebhooks } from '../with-webhooks.ts';
import { webhookVerb } from './webhook-verb.ts';

/** Nobody gives up on a command but by ending it. */
const NEVER = new AbortController().signal;

export const webhookList: Command = {
  words: 'webhook list',
  operands: ['ACCOUNT'],
  options: ['config', 'json'],
  summary: 'List the webhooks of an account.',
  act: (invocation) =>
    withWebhooks(invocation, ({ webhooks, by }) => {
      const list = webhooks.list(by.accountId);
      const head = ['WEBHOOK ID', 'HOST', 'STATE', 'PROGRAMS', 'FAILING SINCE', 'LAST SUCCESS'];
      const empty = 'No webhooks yet; webhook create ACCOUNT URL makes one.';
      const text = tableOf(head, list.map(cellsOf), empty);
      return { kind: 'done', objects: list.map(webhookRecord), text };
    }),
};

export const webhookCreate: Command = {
  words: 'webhook create',
  operands: ['ACCOUNT', 'URL'],
  options: ['programs', 'description', 'config', 'json'],
  summary: 'Make a webhook, for all programs or for --programs A,B; its secret is shown this once.',
  act: (invocation) =>
    withWebhooks(invocation, async ({ webhooks, by }) => {
      const url = invocation.operands[1] ?? '';
      return webhookOutcome(await webhooks.create(by, { url, ...settingsFrom(invocation) }, NEVER), url);
    }),
};

export const webhookEdit: Command = {
  words: 'webhook edit',
  operands: ['ACCOUNT', 'WEBHOOK_ID'],
  options: ['url', 'programs', 'description', 'config', 'json'],
  summary: 'Change the URL, the programs (A,B or all) or the description of a webhook.',
  act: (invocation) =>
    withWebhooks(invocation, async ({ webhooks, by }) => {
      const id = invocation.operands[1] ?? '';
      const given = settingsFrom(invocation);
      if (Object.keys(given).length === 0)
        return failed('webhook edit needs --url, --programs or --description.');
      return webhookOutcome(await webhooks.edit(by, id, given, NEVER), id);
    }),
};

export const webhookPause = webhookVerb('pause', 'Pause a webhook: open and new deliveries are skipped.');
export const webhookResume = webhookVerb('resume', 'Make a paused webhook active again.');
export const webhookDelete = webhookVerb(
  'remove',
  'Delete a webhook and cancel what waits to be sent.',
  'delete',
);

function settingsFrom({ values }: Invocation): Partial<Settings> {
  const { url, programs, description } = values;
  return {
    ...(url !== undefined && { url }),
    ...(programs !== undefined && { programs: programs === 'all' ? null : programs.split(',') }),
    ...(description !== undefined && { description }),
  };
}

function cellsOf({ id, url, pausedAtMs, programs, failingSinceMs, lastSuccessAtMs }: Webhook): string[] {
  const timeOf = (atMs: number | null) => (atMs === null ? '-' : isoOf(atMs));
  const state = pausedAtMs === null ? 'active' : 'paused';
  const wanted = programs === null ? 'all' : String(programs.length);
  return [id, new URL(url).host, state, wanted, timeOf(failingSinceMs), timeOf(lastSuccessAtMs)];
}
