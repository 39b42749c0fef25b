import { IDEMPOTENCY_KEPT_MS } from '../../outbox/prune.ts';
import { WEBHOOKS_MAX } from '../../webhooks/create.ts';
import { TAKEOVERS } from '../../webhooks/rotate.ts';
import { refOf, type SchemaName, WWW_AUTHENTICATE } from '../schema.ts';
import { IDEMPOTENCY_KEY_MAX } from './body.ts';

const ID = pathParameter('id', 'Id of a webhook');
const DELIVERY = pathParameter('delivery', 'Id of a delivery');
const HOURS_KEPT = IDEMPOTENCY_KEPT_MS / 3_600_000;
const IDEMPOTENCY_KEY = {
  name: 'Idempotency-Key',
  in: 'header' as const,
  required: false,
  description:
    `A name of your own for this request, such as a UUID. For ${HOURS_KEPT} hours the same name and body give the same webhook, ` +
    'again with 201, and `Idempotency-Replayed: true`; another body is 422, and a request that is under way 409.',
  schema: { type: 'string' as const, maxLength: IDEMPOTENCY_KEY_MAX },
};
const SETTINGS = {
  url: { type: 'string', description: 'https, on the public internet' },
  programs: {
    anyOf: [{ type: 'array', items: { type: 'string' }, minItems: 1 }, { type: 'null' }],
    description: 'Addresses of watched programs; null for all',
  },
  description: { type: 'string', maxLength: 200 },
};

const LATER = { 202: described('It is due now', { type: 'object' }) };
const GONE = { 404: errorOf('The account has no such webhook or delivery') };
const CONFLICT = { 409: errorOf('It does not go with what there is; the text says why') };
const UNFIT = {
  422: errorOf('A value that is not taken, such as a URL that is not public; the text says why'),
  503: errorOf('The host of the URL cannot be looked up now, or keys cannot be checked: retry with backoff'),
};
const MALFORMED = { 400: errorOf('The body or the query cannot be read; the text says why') };
const one = { 200: described('The webhook', refOf('WebhookRecord')) };
const shown = described('The webhook, and its secret this once', refOf('WebhookSecretAnswer'));

/** The operations on webhooks in OpenAPI's words. */
export const WEBHOOK_OPERATIONS = {
  list: operation('listWebhooks', 'The webhooks of the account', [], {
    200: described('The webhooks, oldest first', refOf('WebhooksAnswer')),
  }),
  create: operation(
    'createWebhook',
    `Make a webhook; at most ${WEBHOOKS_MAX} per account`,
    [IDEMPOTENCY_KEY],
    { 201: shown, ...MALFORMED, ...CONFLICT, ...UNFIT },
    bodyOf(SETTINGS, ['url']),
  ),
  find: operation('getWebhook', 'One webhook', [ID], { ...one, ...GONE }),
  edit: operation(
    'editWebhook',
    'Change the URL, the programs or the description',
    [ID],
    { ...one, ...MALFORMED, ...GONE, ...UNFIT },
    bodyOf(SETTINGS, []),
  ),
  remove: operation('deleteWebhook', 'Delete a webhook and cancel its open deliveries', [ID], {
    204: { description: 'It is deleted' },
    ...GONE,
  }),
  pause: operation('pauseWebhook', 'Pause: open and new deliveries are skipped', [ID], { ...one, ...GONE }),
  resume: operation('resumeWebhook', 'Resume: new events are delivered again', [ID], { ...one, ...GONE }),
  rotate: operation(
    'rotateWebhookSecret',
    'Make a new secret that takes over now, in 1 h or in 24 h; until then it signs in `X-Service-Signature-Next`',
    [ID],
    { 200: shown, ...MALFORMED, ...GONE, ...CONFLICT },
    bodyOf({ takes_over: { type: 'string', enum: Object.keys(TAKEOVERS), default: '24h' } }, []),
  ),
  switchNow: operation('switchWebhookSecret', 'Let the waiting secret take over now', [ID], {
    ...one,
    ...GONE,
    ...CONFLICT,
  }),
  cancelRotation: operation('cancelWebhookRotation', 'Forget the waiting secret', [ID], {
    ...one,
    ...GONE,
    ...CONFLICT,
  }),
  sendTest: operation('sendTest', 'Send a `ping`', [ID], { ...LATER, ...GONE, ...CONFLICT }),
  resendFailed: operation(
    'resendFailed',
    'Attempt every failed delivery made since an instant once more',
    [ID],
    { ...LATER, ...MALFORMED, ...GONE, ...CONFLICT },
    bodyOf({ since: { type: 'string', format: 'date-time' } }, ['since']),
  ),
  deliveries: operation(
    'listDeliveries',
    'Deliveries of a webhook, newest first',
    [ID, queryOf('state', 'string'), queryOf('limit', 'integer'), queryOf('cursor', 'string')],
    { 200: described('A page of deliveries', refOf('DeliveriesAnswer')), ...MALFORMED, ...GONE },
  ),
  delivery: operation('getDelivery', 'One delivery with its body and its attempts', [ID, DELIVERY], {
    200: described('The delivery, and `body` and `tries`', { type: 'object' }),
    ...GONE,
  }),
  resend: operation('resendDelivery', 'Attempt a delivery once more, under the same id', [ID, DELIVERY], {
    ...LATER,
    ...GONE,
    ...CONFLICT,
  }),
};

type Parameter = ReturnType<typeof pathParameter> | ReturnType<typeof queryOf> | typeof IDEMPOTENCY_KEY;
type Responses = Readonly<Record<number, Readonly<{ description: string; content?: object }>>>;

function operation(
  operationId: string,
  summary: string,
  parameters: Parameter[],
  responses: Responses,
  body = {},
) {
  const keyed = {
    401: {
      ...errorOf('No key, or a key that is unknown or inactive: send an active key'),
      headers: WWW_AUTHENTICATE,
    },
    429: errorOf('Too many requests: wait the number of seconds in `Retry-After`'),
    503: errorOf('Keys cannot be checked: retry with backoff'),
  };
  const security = [{ token: [] }, { bearer: [] }, { query: [] }];
  return {
    operationId,
    summary,
    tags: ['Webhooks'],
    security,
    parameters,
    responses: { ...keyed, ...responses },
    ...body,
  };
}

function pathParameter(name: string, description: string) {
  return {
    name,
    in: 'path' as const,
    required: true,
    description,
    schema: { type: 'string' as const, format: 'uuid' },
  };
}

function queryOf(name: string, type: 'string' | 'integer') {
  return { name, in: 'query' as const, required: false, schema: { type } };
}

function bodyOf(properties: object, required: readonly string[]) {
  const schema = { type: 'object', properties, required, additionalProperties: false };
  return { requestBody: { required: required.length > 0, content: { 'application/json': { schema } } } };
}

function described(description: string, schema: object) {
  return { description, content: { 'application/json': { schema } } };
}

function errorOf(description: string) {
  const name: SchemaName = 'ErrorAnswer';
  return described(description, refOf(name));
}
