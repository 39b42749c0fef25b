import type { By } from '../../deploys/accounts/audit.ts';
import { deliveryRecord, webhookRecord } from '../../deploys/api/webhook-answers.ts';
import { internetPolicy } from '../../deploys/delivery/policy.ts';
import { createEnqueue } from '../../deploys/outbox/enqueue.ts';
import { type AccountDeliveries, createAccountDeliveries } from '../../deploys/outbox/list.ts';
import { readWatched } from '../../shared/watched.ts';
import { type Takeover, TAKEOVERS } from '../../deploys/webhooks/change.ts';
import { WEBHOOKS_MAX } from '../../deploys/webhooks/create.ts';
import { countSealed, createSeal, takeSealingKeys } from '../../deploys/webhooks/seal.ts';
import { ATTEMPTS_EVER_MAX } from '../../deploys/webhooks/send-again.ts';
import type { Settings } from '../../deploys/webhooks/settings.ts';
import type { Webhook } from '../../deploys/webhooks/webhook.ts';
import { createWebhooks, type Webhooks } from '../../deploys/webhooks/webhooks.ts';
import { unreachable } from '../../shared/brand.ts';
import { COMMAND_LINE, onBooks, unknownAccount } from '../frame/books.ts';
import { type Command, done, failed, type Invocation, type Outcome } from '../frame/command.ts';
import { durationMsFrom, isoOf, listed } from '../frame/values.ts';

/** A command ends only with its process. */
const NEVER = new AbortController().signal;
const SHOWN = 50;
const TAKEOVER_NAMES = Object.keys(TAKEOVERS) as readonly Takeover[]; // Object.keys forgets the keys' type

export const webhookCommands: readonly Command[] = [
  onWebhooks('webhook list ACCOUNT', 'List the webhooks of an account.', ({ webhooks, by }) =>
    listed(
      webhooks.list(by.accountId),
      webhookRecord,
      ({ id, url, pausedAtMs, programs, failingSinceMs, lastSuccessAtMs }) => ({
        'WEBHOOK ID': id,
        HOST: new URL(url).host,
        STATE: pausedAtMs === null ? 'active' : 'paused',
        PROGRAMS: programs === null ? 'all' : String(programs.length),
        'FAILING SINCE': failingSinceMs === null ? '-' : isoOf(failingSinceMs),
        'LAST SUCCESS': lastSuccessAtMs === null ? '-' : isoOf(lastSuccessAtMs),
      }),
      'No webhooks yet. Create one with: webhook create ACCOUNT URL',
    ),
  ),
  onWebhooks(
    'webhook create ACCOUNT URL --programs --description',
    'Create a webhook for all programs or for --programs A,B; its secret is shown only once.',
    async ({ webhooks, by, subject: url }, invocation) =>
      webhookOutcome(await webhooks.create(by, { url, ...settingsFrom(invocation) }, NEVER), url),
  ),
  onWebhooks(
    'webhook edit ACCOUNT WEBHOOK_ID --url --programs --description',
    'Change the URL, programs (A,B or all) or description of a webhook.',
    async ({ webhooks, by, subject }, invocation) => {
      const given = settingsFrom(invocation);
      if (Object.keys(given).length === 0)
        return failed('webhook edit requires --url, --programs or --description.');
      return webhookOutcome(await webhooks.edit(by, subject, given, NEVER), subject);
    },
  ),
  plain('pause', 'Pause a webhook: pending and new deliveries are skipped.', (webhooks) => webhooks.pause),
  plain('resume', 'Resume a paused webhook.', (webhooks) => webhooks.resume),
  plain('delete', 'Delete a webhook and cancel its pending deliveries.', (webhooks) => webhooks.remove),
  onWebhooks(
    'webhook rotate ACCOUNT WEBHOOK_ID --takes-over',
    'Create a new signing secret, shown only once, that takes effect now, in 1h or in 24h (default).',
    ({ webhooks, by, subject }, { options: { 'takes-over': given = '24h' } }) => {
      const takeover = TAKEOVER_NAMES.find((name) => name === given);
      if (takeover === undefined)
        return failed(`--takes-over must be one of ${TAKEOVER_NAMES.join(', ')}, not "${given}".`);
      return webhookOutcome(webhooks.rotate(by, subject, takeover), subject);
    },
  ),
  plain('switch-secret', 'Put a pending secret into effect now.', (webhooks) => webhooks.switchNow),
  plain(
    'cancel-rotation',
    'Cancel a pending rotation; the current secret stays.',
    (webhooks) => webhooks.cancelRotation,
  ),
  plain(
    'test',
    'Send a test delivery; webhook deliveries shows its result.',
    (webhooks) => webhooks.sendTest,
  ),
  onWebhooks(
    'webhook deliveries ACCOUNT [WEBHOOK_ID]',
    `List the latest ${SHOWN} deliveries of an account or of one webhook.`,
    ({ deliveries, by }, { operands: [, webhookId] }) =>
      listed(
        deliveries.page(by.accountId, { limit: SHOWN, ...(webhookId !== undefined && { webhookId }) }).rows,
        deliveryRecord,
        ({ id, createdAtMs, url, eventKind, state, attempts, lastStatus, lastError }) => ({
          'DELIVERY ID': id,
          CREATED: isoOf(createdAtMs),
          HOST: new URL(url).host,
          EVENT: eventKind,
          STATE: state,
          ATTEMPTS: String(attempts),
          RESPONSE: String(lastStatus ?? lastError ?? '-'),
        }),
        'No deliveries yet.',
      ),
  ),
  onWebhooks(
    'webhook resend-failed ACCOUNT WEBHOOK_ID --since',
    'Retry all failed deliveries of the last --since (default 24h; for example 1h, 7d).',
    ({ webhooks, by, subject }, { options: { since = '24h' }, world }) => {
      const spanMs = durationMsFrom(since);
      if (spanMs === undefined)
        return failed(`--since must be a duration such as 1h, 24h or 7d, not "${since}".`);
      return webhookOutcome(webhooks.resendAllFailed(by, subject, world.clock.now() - spanMs), subject);
    },
  ),
  onWebhooks(
    'webhook resend ACCOUNT DELIVERY_ID',
    'Retry a delivery, with the same ID and body.',
    ({ webhooks, deliveries, by, subject }) => {
      const webhookId = deliveries.find(by.accountId, subject)?.webhookId ?? '';
      return webhookOutcome(webhooks.resendOne(by, webhookId, subject), subject);
    },
  ),
];

type Change = (by: By, id: string) => Result;

/** A command that does one thing to the webhook in its second operand, and needs nothing else. */
function plain(verb: string, summary: string, changeOf: (webhooks: Webhooks) => Change): Command {
  return onWebhooks(`webhook ${verb} ACCOUNT WEBHOOK_ID`, summary, ({ webhooks, by, subject }) =>
    webhookOutcome(changeOf(webhooks)(by, subject), subject),
  );
}

function settingsFrom({ options }: Invocation): Partial<Settings> {
  const { url, programs, description } = options;
  return {
    ...(url !== undefined && { url }),
    ...(programs !== undefined && { programs: programs === 'all' ? null : programs.split(',') }),
    ...(description !== undefined && { description }),
  };
}

/** The webhooks of the account that a command names first, and who changes them. */
type WebhookDesk = Readonly<{
  webhooks: Webhooks;
  deliveries: AccountDeliveries;
  by: By;
  /** The second operand: the id of a webhook or delivery, or the URL of a new webhook. */
  subject: string;
}>;

/** A command on the webhooks of its first operand, an account. The running app sends what falls due within a second. */
function onWebhooks(
  usage: string,
  summary: string,
  act: (desk: WebhookDesk, invocation: Invocation) => Outcome | Promise<Outcome>,
): Command {
  return onBooks(usage, summary, ({ config, store, accounts }, invocation) => {
    const { clock, random } = invocation.world;
    const [name = '', subject = ''] = invocation.operands;
    const account = accounts.find(name);
    if (account === undefined) return failed(unknownAccount(name));
    const watched = readWatched(config.deploys.programsPath);
    if (watched.kind === 'problems') return failed(...watched.lines);
    const { secret, dataDir } = config.storage;
    const sealing = takeSealingKeys(secret, dataDir, random, countSealed(store));
    if (sealing.kind === 'unusable') return failed(sealing.sentence);
    const addresses = new Set<string>(watched.programs.map(({ address }) => address));
    const webhooks = createWebhooks({
      store,
      clock,
      random,
      seal: createSeal(sealing.keys, random),
      policy: internetPolicy([config.deploys.publicUrl.hostname]),
      isWatched: (address) => addresses.has(address),
      enqueue: createEnqueue(store, (program) => program, random),
      wake: () => undefined,
    });
    const by = { accountId: account.id, actor: COMMAND_LINE };
    return act({ webhooks, deliveries: createAccountDeliveries(store), by, subject }, invocation);
  });
}

/** The result of any change of a webhook. */
type Result = Awaited<ReturnType<Webhooks[Changing]>>;
type Changing =
  | 'create'
  | 'edit'
  | 'pause'
  | 'remove'
  | 'rotate'
  | 'switchNow'
  | 'sendTest'
  | 'resendOne'
  | 'resendAllFailed';

/** The outcome of a change of a webhook. `subject` is the id that the command named. */
function webhookOutcome(result: Result, subject: string): Outcome {
  switch (result.kind) {
    case 'created':
    case 'rotated':
      return shownOnce(result.webhook, result.secret.reveal());
    case 'edited':
    case 'paused':
    case 'resumed':
    case 'settled':
      return done(lineOf(result.webhook), webhookRecord(result.webhook));
    case 'removed':
      return done(`Webhook ${subject} has been deleted.`, { id: subject, deleted: true });
    case 'queued':
      return done(`The test is queued as delivery ${result.deliveryId}.`, { delivery_id: result.deliveryId });
    case 'due':
      return 'deliveries' in result
        ? done(`Deliveries to retry: ${result.deliveries}.`, { deliveries: result.deliveries })
        : done(`Delivery ${subject} will be retried.`, { deliveries: 1 });
    case 'unfit':
    case 'unresolved':
      return failed(`${result.text}.`);
    case 'too-many':
      return failed(`The account already has ${WEBHOOKS_MAX} webhooks, the maximum.`);
    case 'made-before':
      return failed(`This webhook was already created as ${result.webhookId}.`);
    case 'no-webhook':
      return failed(`The account has no webhook with ID "${subject}". List webhooks with: webhook list`);
    case 'no-delivery':
      return failed(
        `The account has no delivery with ID "${subject}". List deliveries with: webhook deliveries`,
      );
    case 'webhook-paused':
      return failed('The webhook is paused. Resume it with: webhook resume');
    case 'rotation-pending':
      return failed(
        'A new secret is already pending. Use webhook switch-secret or webhook cancel-rotation first.',
      );
    case 'no-rotation':
      return failed('No new secret is pending.');
    case 'changed-meanwhile':
      return failed('The webhook was changed in the meantime. Try again.');
    case 'over-rate':
      return failed(`Too many tests. Try again in ${result.retryAfterSeconds} seconds.`);
    case 'already-due':
    case 'not-yet':
      return failed(`Delivery ${subject} is already scheduled.`);
    case 'worn-out':
      return failed(`Delivery ${subject} has been attempted ${ATTEMPTS_EVER_MAX} times, the maximum.`);
    default:
      return unreachable(result);
  }
}

/** A webhook in a line; only its host, because the rest of a URL may hold a secret. */
function lineOf({ id, url, pausedAtMs }: Webhook): string {
  return `Webhook ${id} to ${new URL(url).host} is ${pausedAtMs === null ? 'active' : 'paused'}.`;
}

function shownOnce(webhook: Webhook, secret: string): Outcome {
  const object = { webhook: webhookRecord(webhook), secret };
  return done(`${lineOf(webhook)} Its secret won't be shown again:\n${secret}`, object);
}
