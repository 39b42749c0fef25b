import { EVENT_KINDS } from '../outbox/enqueue.ts';
import { type Static, t } from 'elysia';

const Nullable = <T extends Parameters<typeof t.Union>[0][number]>(schema: T, description: string) =>
  t.Union([schema, t.Null()], { description });

/** Elysia's own `t.Integer` also takes text, which no answer has, and says so in the OpenAPI document. */
const Integer = t.Unsafe<number>({ ...t.Number({ multipleOf: 1 }), type: 'integer' });

/** An object with these members and no others. */
const record = <Members extends Parameters<typeof t.Object>[0]>(members: Members) =>
  t.Object(members, { additionalProperties: false });

/** One watched program on the wire (docs/spec.md 3). */
export const ProgramRecord = record({
  program_id: t.String({ description: 'Program address (base58)' }),
  label: t.String({ description: 'Program name' }),
  status: t.Union(
    [t.Literal('upgradeable'), t.Literal('frozen'), t.Literal('other_loader'), t.Literal('missing')],
    {
      description:
        '`upgradeable`: has an upgrade authority and can be redeployed. `frozen`: upgrade authority removed; can never ' +
        'change again. `other_loader`: deployed with a loader that does not support upgrades. `missing`: the program ' +
        'or its ProgramData account no longer exists.',
    },
  ),
  upgrade_authority: Nullable(t.String(), 'Address allowed to upgrade the program; null when there is none'),
  deploy_slot: Nullable(Integer, 'Slot of the last deploy; null when the program has none'),
  deployed_at: Nullable(
    t.String({ format: 'date-time' }),
    'Block time of `deploy_slot`; null until it has been looked up',
  ),
});
export type ProgramRecord = Static<typeof ProgramRecord>;

/** The answer of the programs endpoint (docs/spec.md 3). */
export const ProgramsAnswer = record({
  checked_at: t.String({
    format: 'date-time',
    description: 'When the programs were last read from the chain (UTC, milliseconds)',
  }),
  programs: t.Array(ProgramRecord, { description: 'Ordered by `deploy_slot`, newest first' }),
});
export type ProgramsAnswer = Static<typeof ProgramsAnswer>;

const ErrorAnswer = record({ error: t.String() });

const Instant = t.String({ format: 'date-time' });

/** A webhook on the wire. Its secret is no part of it. */
export const WebhookRecord = record({
  id: t.String({ format: 'uuid' }),
  url: t.String({ description: 'Where deliveries are sent; https, on the public internet' }),
  programs: Nullable(
    t.Array(t.String()),
    'Program addresses it is limited to; null for all watched programs',
  ),
  description: t.String({ description: 'One line of at most 200 characters' }),
  state: t.Union([t.Literal('active'), t.Literal('paused')], {
    description: 'While it is `paused`, deliveries are recorded as `skipped` and not sent',
  }),
  created_at: Instant,
  updated_at: Instant,
  failing_since: Nullable(Instant, 'Since when automatic attempts fail; null after a success'),
  consecutive_failures: Integer,
  last_success_at: Nullable(Instant, 'When an attempt last succeeded'),
  next_secret_at: Nullable(Instant, 'When a rotated secret takes over; null when no rotation is pending'),
});
export type WebhookRecord = Static<typeof WebhookRecord>;

export const WebhooksAnswer = record({ webhooks: t.Array(WebhookRecord) });

/** The only answers that hold a secret. */
export const WebhookSecretAnswer = record({
  webhook: WebhookRecord,
  secret: t.String({ description: 'The signing secret, shown this once' }),
});

export const DeliveryRecord = record({
  id: t.String({ format: 'uuid', description: 'The `id` of the event, the same on every attempt' }),
  event: t.String({ description: EVENT_KINDS.map((kind) => `\`${kind}\``).join(' or ') }),
  state: t.String({
    description: '`queued`, `attempting`, `retry_scheduled`, `delivered`, `failed`, `skipped` or `cancelled`',
  }),
  attempts: t.Unsafe<number>({ type: 'integer', description: 'Automatic attempts, at most 6' }),
  next_attempt_at: Nullable(Instant, 'When the next automatic attempt is due'),
  resend_at: Nullable(Instant, 'Since when an attempt asked for by hand is due'),
  last_status: Nullable(Integer, 'HTTP status of the last response'),
  last_error: Nullable(t.String(), 'Why the last attempt failed, such as `http_500` or `timeout`'),
  created_at: Instant,
  finished_at: Nullable(Instant, 'When it reached its final state'),
  program_id: Nullable(t.String(), 'The program that was deployed; null for a ping'),
  label: Nullable(t.String(), 'Its name'),
  deploy_slot: Nullable(Integer, 'Slot of the deploy'),
});
export type DeliveryRecord = Static<typeof DeliveryRecord>;

export const DeliveriesAnswer = record({
  deliveries: t.Array(DeliveryRecord, { description: 'Newest first' }),
  next_cursor: Nullable(t.String(), 'The `cursor` of the next page; null on the last'),
});

/** The schemas by their names in the OpenAPI document. */
export const SCHEMAS = {
  ProgramRecord,
  ProgramsAnswer,
  ErrorAnswer,
  WebhookRecord,
  WebhooksAnswer,
  WebhookSecretAnswer,
  DeliveryRecord,
  DeliveriesAnswer,
};
export type SchemaName = keyof typeof SCHEMAS;

/** The header of every 401 in the OpenAPI document. */
export const WWW_AUTHENTICATE = {
  'WWW-Authenticate': {
    description: '`Bearer`, to a wrong key with `error="invalid_token"` and `error_description` (RFC 6750)',
    schema: { type: 'string' as const },
  },
};

export function refOf(name: SchemaName): { $ref: string } {
  return { $ref: `#/components/schemas/${name}` };
}
