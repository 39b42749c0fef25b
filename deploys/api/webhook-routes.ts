import { Elysia } from 'elysia';
import type { By } from '../accounts/audit.ts';
import type { Webhooks } from '../webhooks/webhooks.ts';
import { WEBHOOK_OPERATIONS as OPERATIONS } from './openapi.ts';
import { refusalResponse } from './refusal.ts';
import {
  deliveryDetail,
  deliveryRecord,
  jsonResponse,
  outcomeResponse,
  webhookRecord,
} from './webhook-answers.ts';
import {
  type Admit,
  nextCursor,
  pageFrom,
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

/** Elysia gives no `params` where the path has none. */
type Context = Readonly<{ request: Request; params?: Readonly<Record<string, string>> }>;
type Asked = Readonly<{ by: By; id: string; delivery: string; request: Request }>;

const ONE = `${WEBHOOKS_PATH}/:id`;
const NOT_FOUND = { kind: 'not-found' } as const;

/** The routes of webhooks; `admit` decides who is let in, before anything of the request is read. */
export function createWebhookRoutes({ admit, webhooks }: WebhookRoutesDeps) {
  const answers = createAnswers(webhooks);

  function admitted(answer: (asked: Asked) => Response | Promise<Response>) {
    return async ({ request, params }: Context): Promise<Response> => {
      const admission = await admit(request);
      if (admission.kind !== 'admitted') return refusalResponse(admission);
      const { id = '', delivery = '' } = params ?? {};
      return answer({ by: admission.by, id, delivery, request });
    };
  }
  const outcome = <T extends Parameters<typeof outcomeResponse>[0]>(act: (by: By, id: string) => T) =>
    admitted(({ by, id }) => outcomeResponse(act(by, id)));
  const only = (allow: string) => () => refusalResponse({ kind: 'wrong-method', allow });
  const detail = (name: keyof typeof OPERATIONS) => ({ detail: OPERATIONS[name], parse: 'none' as const });
  const hidden = { detail: { hide: true }, parse: 'none' as const };

  return new Elysia()
    .get(WEBHOOKS_PATH, admitted(answers.list), detail('list'))
    .head(WEBHOOKS_PATH, admitted(answers.list), hidden)
    .post(WEBHOOKS_PATH, admitted(answers.create), detail('create'))
    .all(WEBHOOKS_PATH, only('GET, HEAD, POST'), hidden)
    .get(ONE, admitted(answers.find), detail('find'))
    .head(ONE, admitted(answers.find), hidden)
    .patch(ONE, admitted(answers.edit), detail('edit'))
    .delete(ONE, outcome(webhooks.remove), detail('remove'))
    .all(ONE, only('GET, HEAD, PATCH, DELETE'), hidden)
    .post(`${ONE}/pause`, outcome(webhooks.pause), detail('pause'))
    .all(`${ONE}/pause`, only('POST'), hidden)
    .post(`${ONE}/resume`, outcome(webhooks.resume), detail('resume'))
    .all(`${ONE}/resume`, only('POST'), hidden)
    .post(`${ONE}/rotation`, admitted(answers.rotate), detail('rotate'))
    .delete(`${ONE}/rotation`, outcome(webhooks.cancelRotation), detail('cancelRotation'))
    .all(`${ONE}/rotation`, only('POST, DELETE'), hidden)
    .post(`${ONE}/rotation/switch`, outcome(webhooks.switchNow), detail('switchNow'))
    .all(`${ONE}/rotation/switch`, only('POST'), hidden)
    .post(`${ONE}/test`, outcome(webhooks.sendTest), detail('sendTest'))
    .all(`${ONE}/test`, only('POST'), hidden)
    .post(`${ONE}/resend-failed`, admitted(answers.resendFailed), detail('resendFailed'))
    .all(`${ONE}/resend-failed`, only('POST'), hidden)
    .get(`${ONE}/deliveries`, admitted(answers.deliveries), detail('deliveries'))
    .head(`${ONE}/deliveries`, admitted(answers.deliveries), hidden)
    .all(`${ONE}/deliveries`, only('GET, HEAD'), hidden)
    .get(`${ONE}/deliveries/:delivery`, admitted(answers.delivery), detail('delivery'))
    .head(`${ONE}/deliveries/:delivery`, admitted(answers.delivery), hidden)
    .all(`${ONE}/deliveries/:delivery`, only('GET, HEAD'), hidden)
    .post(`${ONE}/deliveries/:delivery/resend`, admitted(answers.resend), detail('resend'))
    .all(`${ONE}/deliveries/:delivery/resend`, only('POST'), hidden);
}

function createAnswers(webhooks: Webhooks) {
  return {
    list: ({ by }: Asked) => jsonResponse({ webhooks: webhooks.list(by.accountId).map(webhookRecord) }),
    find: ({ by, id }: Asked) => {
      const webhook = webhooks.find(by.accountId, id);
      return webhook ? jsonResponse(webhookRecord(webhook)) : refusalResponse(NOT_FOUND);
    },
    create: async ({ by, request }: Asked) => {
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
    edit: async ({ by, id, request }: Asked) => {
      const read = await readSettings(request);
      if (read.kind !== 'read') return refusalResponse(read);
      return outcomeResponse(await webhooks.edit(by, id, read.value, request.signal));
    },
    rotate: async ({ by, id, request }: Asked) => {
      const read = await readTakeover(request);
      if (read.kind !== 'read') return refusalResponse(read);
      return outcomeResponse(webhooks.rotate(by, id, read.value));
    },
    resendFailed: async ({ by, id, request }: Asked) => {
      const read = await readSince(request);
      if (read.kind !== 'read') return refusalResponse(read);
      return outcomeResponse(webhooks.resendAllFailed(by, id, read.value));
    },
    resend: ({ by, id, delivery }: Asked) => {
      const resent = webhooks.resendOne(by, id, delivery);
      return outcomeResponse(resent.kind === 'due' ? { kind: 'due', deliveries: 1 } : resent);
    },
    deliveries: ({ by, id, request }: Asked) => {
      const read = pageFrom(id, new URL(request.url).searchParams);
      if (read.kind !== 'page') return refusalResponse(read);
      const rows = webhooks.deliveries(by.accountId, read.page);
      if (rows === undefined) return refusalResponse(NOT_FOUND);
      const next_cursor = nextCursor(rows, read.page.limit);
      return jsonResponse({ deliveries: rows.map(deliveryRecord), next_cursor });
    },
    delivery: ({ by, id, delivery }: Asked) => {
      const found = webhooks.delivery(by.accountId, id, delivery);
      return found ? jsonResponse(deliveryDetail(found)) : refusalResponse(NOT_FOUND);
    },
  };
}
