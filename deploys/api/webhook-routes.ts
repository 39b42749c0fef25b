import { Elysia } from 'elysia';
import type { By } from '../accounts/audit.ts';
import { WEBHOOKS_MAX } from '../webhooks/create.ts';
import type { Webhooks } from '../webhooks/webhooks.ts';
import {
  CONFLICT,
  described,
  type Description,
  IDEMPOTENCY_KEY,
  queryOf,
  UNFIT,
  webhookOperation,
} from './openapi.ts';
import { refusalResponse } from './refusal.ts';
import {
  deliveryDetail,
  deliveryRecord,
  jsonResponse,
  type Outcome,
  outcomeResponse,
  webhookRecord,
} from './webhook-answers.ts';
import {
  type Admit,
  type Fields,
  type Members,
  NEW_SETTINGS,
  nextCursor,
  pageFrom,
  readBody,
  readIdempotencyKey,
  SETTINGS,
  SINCE,
  TAKEOVER,
} from './webhook-requests.ts';

/** Where an account manages its webhooks. */
export const WEBHOOKS_PATH = '/api/v1/webhooks';

export type WebhookRoutesDeps = Readonly<{
  admit: Admit;
  webhooks: Webhooks;
  /** Why changes are refused, as a sentence. Absent, they never are. */
  whyReadOnly?: (() => string | undefined) | undefined;
}>;

type Admitted = Readonly<{ by: By; id: string; delivery: string; request: Request }>;

type ApiAnswer = Outcome | Response;

/** An operation as it is described and as it is answered. */
type ApiRoute<Some extends Fields> = Description &
  Readonly<{
    fields?: Some;
    answer(
      webhooks: Webhooks,
      request: Admitted & Readonly<{ body: Members<Some> }>,
    ): ApiAnswer | Promise<ApiAnswer>;
  }>;

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

function route<Some extends Fields>(
  method: Method,
  below: string,
  { answer, ...description }: ApiRoute<Some>,
) {
  const path = `${WEBHOOKS_PATH}${below}`;
  const { fields } = description;
  return {
    method,
    path,
    operation: webhookOperation(path, description),
    async handle(webhooks: Webhooks, admitted: Admitted): Promise<Response> {
      const read = fields && (await readBody(admitted.request, fields));
      if (read?.kind === 'malformed-body') return refusalResponse(read);
      // Without fields the type has no members.
      const body = read?.value ?? ({} as Members<Some>);
      const answered = await answer(webhooks, { ...admitted, body });
      return answered instanceof Response ? answered : outcomeResponse(answered);
    },
  };
}

const WEBHOOK = { 200: described('The webhook', 'WebhookRecord') };
const SECRET = described('The webhook, and its secret, shown only this once', 'WebhookSecretAnswer');
const LATER = { 202: described('It is due now', { type: 'object' }), ...CONFLICT };
const NOT_FOUND = { kind: 'not-found' } as const;

/** Changes that take nothing but the webhook's id, each with its responses. */
const CHANGES = {
  remove: { 204: { description: 'It is deleted' } },
  pause: WEBHOOK,
  resume: WEBHOOK,
  switchNow: { ...WEBHOOK, ...CONFLICT },
  cancelRotation: { ...WEBHOOK, ...CONFLICT },
  sendTest: LATER,
};

function change(
  method: Method,
  below: string,
  act: keyof typeof CHANGES,
  operationId: string,
  summary: string,
) {
  const answer = (webhooks: Webhooks, { by, id }: Admitted) => webhooks[act](by, id);
  return route(method, `/:id${below}`, { operationId, summary, responses: CHANGES[act], answer });
}

/** HEAD is answered as GET. */
export const WEBHOOK_ROUTES = [
  route('GET', '', {
    operationId: 'listWebhooks',
    summary: 'The webhooks of the account',
    responses: { 200: described('The webhooks, oldest first', 'WebhooksAnswer') },
    answer: (webhooks, { by }) => jsonResponse({ webhooks: webhooks.list(by.accountId).map(webhookRecord) }),
  }),
  route('POST', '', {
    operationId: 'createWebhook',
    summary: `Create a webhook; at most ${WEBHOOKS_MAX} per account`,
    parameters: [IDEMPOTENCY_KEY],
    fields: NEW_SETTINGS,
    responses: { 201: SECRET, ...CONFLICT, ...UNFIT },
    answer(webhooks, { by, request, body }) {
      const key = readIdempotencyKey(request.headers);
      if (key.kind !== 'read') return refusalResponse(key);
      const given = { ...body, url: body.url ?? '' };
      if (key.value === undefined) return webhooks.create(by, given, request.signal);
      return webhooks.createOnce(by, key.value, given, request.signal);
    },
  }),
  route('GET', '/:id', {
    operationId: 'getWebhook',
    summary: 'One webhook',
    responses: WEBHOOK,
    answer(webhooks, { by, id }) {
      const webhook = webhooks.find(by.accountId, id);
      return webhook ? jsonResponse(webhookRecord(webhook)) : refusalResponse(NOT_FOUND);
    },
  }),
  route('PATCH', '/:id', {
    operationId: 'editWebhook',
    summary: 'Change the URL, the programs or the description',
    fields: SETTINGS,
    responses: { ...WEBHOOK, ...UNFIT },
    answer: (webhooks, { by, id, body, request }) => webhooks.edit(by, id, body, request.signal),
  }),
  change('DELETE', '', 'remove', 'deleteWebhook', 'Delete a webhook and cancel its open deliveries'),
  change('POST', '/pause', 'pause', 'pauseWebhook', 'Pause: open and new deliveries are skipped'),
  change('POST', '/resume', 'resume', 'resumeWebhook', 'Resume: new events are delivered again'),
  route('POST', '/:id/rotation', {
    operationId: 'rotateWebhookSecret',
    summary:
      'Create a new secret that takes over immediately, in 1 h or in 24 h; until then it signs in `X-Service-Signature-Next`',
    fields: TAKEOVER,
    responses: { 200: SECRET, ...CONFLICT },
    answer: (webhooks, { by, id, body }) => webhooks.rotate(by, id, body.takes_over ?? '24h'),
  }),
  change(
    'POST',
    '/rotation/switch',
    'switchNow',
    'switchWebhookSecret',
    'Switch to the new secret immediately',
  ),
  change('DELETE', '/rotation', 'cancelRotation', 'cancelWebhookRotation', 'Cancel a pending rotation'),
  change('POST', '/test', 'sendTest', 'sendTest', 'Send a `ping`'),
  route('POST', '/:id/resend-failed', {
    operationId: 'resendFailed',
    summary: 'Retry every failed delivery created since an instant',
    fields: SINCE,
    responses: LATER,
    answer: (webhooks, { by, id, body: { since = 0 } }) => webhooks.resendAllFailed(by, id, since),
  }),
  route('GET', '/:id/deliveries', {
    operationId: 'listDeliveries',
    summary: 'Deliveries of a webhook, newest first',
    parameters: [queryOf('state', 'string'), queryOf('limit', 'integer'), queryOf('cursor', 'string')],
    responses: { 200: described('A page of deliveries', 'DeliveriesAnswer') },
    answer(webhooks, { by, id, request }) {
      const read = pageFrom(id, new URL(request.url).searchParams);
      if (read.kind !== 'read') return refusalResponse(read);
      const rows = webhooks.deliveries(by.accountId, read.value);
      if (rows === undefined) return refusalResponse(NOT_FOUND);
      const next_cursor = nextCursor(rows, read.value.limit);
      return jsonResponse({ deliveries: rows.map(deliveryRecord), next_cursor });
    },
  }),
  route('GET', '/:id/deliveries/:delivery', {
    operationId: 'getDelivery',
    summary: 'One delivery with its body and its attempts',
    responses: { 200: described('The delivery, and `body` and `tries`', { type: 'object' }) },
    answer(webhooks, { by, id, delivery }) {
      const found = webhooks.delivery(by.accountId, id, delivery);
      return found ? jsonResponse(deliveryDetail(found)) : refusalResponse(NOT_FOUND);
    },
  }),
  route('POST', '/:id/deliveries/:delivery/resend', {
    operationId: 'resendDelivery',
    summary: 'Retry a delivery, under the same id',
    responses: LATER,
    answer: (webhooks, { by, id, delivery }) => webhooks.resendOne(by, id, delivery),
  }),
];

/** The routes of webhooks; `admit` decides who is let in, before anything of the request is read. */
export function createWebhookRoutes({ admit, webhooks, whyReadOnly }: WebhookRoutesDeps) {
  const app = new Elysia();
  for (const [path, routes] of Map.groupBy(WEBHOOK_ROUTES, (each) => each.path)) {
    const methods = routes.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
    const hidden = { detail: { hide: true }, parse: 'none' as const };
    for (const { method, operation, handle } of routes) {
      const handler = async ({ request, params }: Context): Promise<Response> => {
        const admission = await admit(request);
        if (admission.kind !== 'admitted') return refusalResponse(admission);
        const text = method === 'GET' ? undefined : whyReadOnly?.();
        if (text !== undefined) return refusalResponse({ kind: 'read-only', text });
        const { id = '', delivery = '' } = params ?? {};
        return handle(webhooks, { by: admission.by, id, delivery, request });
      };
      app.route(method, path, handler, { detail: operation, parse: 'none' });
      if (method === 'GET') app.head(path, handler, hidden);
    }
    app.all(path, () => refusalResponse({ kind: 'wrong-method', allow: methods.join(', ') }), hidden);
  }
  return app;
}

/** Elysia gives no `params` where the path has none. */
type Context = Readonly<{ request: Request; params?: Readonly<Record<string, string>> }>;
