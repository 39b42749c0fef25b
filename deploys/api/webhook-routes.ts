import { Elysia } from 'elysia';
import type { By } from '../accounts/audit.ts';
import type { Webhooks } from '../webhooks/webhooks.ts';
import { WEBHOOK_OPERATIONS as OPERATIONS } from './openapi.ts';
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
  nextCursor,
  pageFrom,
  type Read,
  readIdempotencyKey,
  readSettings,
  readSince,
  readTakeover,
} from './webhook-requests.ts';

/** Where an account manages its webhooks. */
export const WEBHOOKS_PATH = '/api/v1/webhooks';

export type WebhookRoutesDeps = Readonly<{
  admit: Admit;
  webhooks: Webhooks;
}>;

type AdmittedRequest = Readonly<{ by: By; id: string; delivery: string; request: Request }>;
type Answer = (request: AdmittedRequest) => Response | Promise<Response>;
type Name = keyof typeof OPERATIONS;

const ONE = `${WEBHOOKS_PATH}/:id`;
const NOT_FOUND = { kind: 'not-found' } as const;

/** The routes of a path stand together; HEAD is answered as GET. */
const ROUTES: readonly (readonly [method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, name: Name])[] =
  [
    ['GET', WEBHOOKS_PATH, 'list'],
    ['POST', WEBHOOKS_PATH, 'create'],
    ['GET', ONE, 'find'],
    ['PATCH', ONE, 'edit'],
    ['DELETE', ONE, 'remove'],
    ['POST', `${ONE}/pause`, 'pause'],
    ['POST', `${ONE}/resume`, 'resume'],
    ['POST', `${ONE}/rotation`, 'rotate'],
    ['DELETE', `${ONE}/rotation`, 'cancelRotation'],
    ['POST', `${ONE}/rotation/switch`, 'switchNow'],
    ['POST', `${ONE}/test`, 'sendTest'],
    ['POST', `${ONE}/resend-failed`, 'resendFailed'],
    ['GET', `${ONE}/deliveries`, 'deliveries'],
    ['GET', `${ONE}/deliveries/:delivery`, 'delivery'],
    ['POST', `${ONE}/deliveries/:delivery/resend`, 'resend'],
  ];

/** The routes of webhooks; `admit` decides who is let in, before anything of the request is read. */
export function createWebhookRoutes({ admit, webhooks }: WebhookRoutesDeps) {
  const answers = createAnswers(webhooks);
  const app = new Elysia();
  for (const [path, routes] of Map.groupBy(ROUTES, ([, of]) => of)) {
    const methods = routes.flatMap(([method]) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
    const hidden = { detail: { hide: true }, parse: 'none' as const };
    for (const [method, , name] of routes) {
      const answer = answers[name];
      const handler = async ({ request, params }: Context): Promise<Response> => {
        const admission = await admit(request);
        if (admission.kind !== 'admitted') return refusalResponse(admission);
        const { id = '', delivery = '' } = params ?? {};
        return answer({ by: admission.by, id, delivery, request });
      };
      app.route(method, path, handler, { detail: OPERATIONS[name], parse: 'none' });
      if (method === 'GET') app.head(path, handler, hidden);
    }
    app.all(path, () => refusalResponse({ kind: 'wrong-method', allow: methods.join(', ') }), hidden);
  }
  return app;
}

/** Elysia gives no `params` where the path has none. */
type Context = Readonly<{ request: Request; params?: Readonly<Record<string, string>> }>;

function createAnswers(webhooks: Webhooks): Readonly<Record<Name, Answer>> {
  const change =
    (act: (by: By, id: string) => Outcome): Answer =>
    ({ by, id }) =>
      outcomeResponse(act(by, id));
  const changeBy =
    <Value>(
      read: (request: Request) => Promise<Read<Value>>,
      act: (by: By, id: string, value: Value, signal: AbortSignal) => Outcome | Promise<Outcome>,
    ): Answer =>
    async ({ by, id, request }) => {
      const given = await read(request);
      if (given.kind !== 'read') return refusalResponse(given);
      return outcomeResponse(await act(by, id, given.value, request.signal));
    };

  return {
    list: ({ by }) => jsonResponse({ webhooks: webhooks.list(by.accountId).map(webhookRecord) }),
    find: ({ by, id }) => {
      const webhook = webhooks.find(by.accountId, id);
      return webhook ? jsonResponse(webhookRecord(webhook)) : refusalResponse(NOT_FOUND);
    },
    create: async ({ by, request }) => {
      const read = await readSettings(request);
      if (read.kind !== 'read') return refusalResponse(read);
      const { url, ...more } = read.value;
      if (url === undefined) return refusalResponse({ kind: 'malformed-body', text: 'url is missing' });
      const key = readIdempotencyKey(request.headers);
      if (key.kind !== 'read') return refusalResponse(key);
      const given = { url, ...more };
      if (key.value === undefined) return outcomeResponse(await webhooks.create(by, given, request.signal));
      return outcomeResponse(await webhooks.createOnce(by, key.value, given, request.signal));
    },
    edit: changeBy(readSettings, webhooks.edit),
    remove: change(webhooks.remove),
    pause: change(webhooks.pause),
    resume: change(webhooks.resume),
    rotate: changeBy(readTakeover, (by, id, takeover) => webhooks.rotate(by, id, takeover)),
    switchNow: change(webhooks.switchNow),
    cancelRotation: change(webhooks.cancelRotation),
    sendTest: change(webhooks.sendTest),
    resendFailed: changeBy(readSince, webhooks.resendAllFailed),
    resend: ({ by, id, delivery }) => {
      const resent = webhooks.resendOne(by, id, delivery);
      return outcomeResponse(resent.kind === 'due' ? { kind: 'due', deliveries: 1 } : resent);
    },
    deliveries: ({ by, id, request }) => {
      const read = pageFrom(id, new URL(request.url).searchParams);
      if (read.kind !== 'read') return refusalResponse(read);
      const rows = webhooks.deliveries(by.accountId, read.value);
      if (rows === undefined) return refusalResponse(NOT_FOUND);
      const next_cursor = nextCursor(rows, read.value.limit);
      return jsonResponse({ deliveries: rows.map(deliveryRecord), next_cursor });
    },
    delivery: ({ by, id, delivery }) => {
      const found = webhooks.delivery(by.accountId, id, delivery);
      return found ? jsonResponse(deliveryDetail(found)) : refusalResponse(NOT_FOUND);
    },
  };
}
