import { Elysia } from 'elysia';
import type { Clock } from '../../../shared/clock.ts';
import { carriedKey } from '../../../shared/keys/carrier.ts';
import type { Identify } from '../../../shared/keys/identify.ts';
import type { Webhooks } from '../../webhooks/webhooks.ts';
import { refusalResponse } from '../refusal.ts';
import type { Enter } from '../request-log.ts';
import { jsonResponse, outcomeResponse } from './answer.ts';
import { readSettings, readSince, readTakeover } from './body.ts';
import { WEBHOOK_OPERATIONS as OPERATIONS } from './operations.ts';
import { nextCursor, pageFrom } from './page.ts';
import { deliveryDetail, deliveryRecord, webhookRecord } from './wire.ts';

/** Where an account manages its webhooks. */
export const WEBHOOKS_PATH = '/api/v1/webhooks';

export type WebhookRoutesDeps = Readonly<{
  identify: Identify;
  enter: Enter;
  webhooks: Webhooks;
  clock: Clock;
}>;

/** Elysia gives no `params` where the path has none. */
type Context = Readonly<{ request: Request; params?: Readonly<Record<string, string>> }>;
type Asked = Readonly<{ account: number; id: string; delivery: string; request: Request }>;

const ONE = `${WEBHOOKS_PATH}/:id`;
const NOT_FOUND = { kind: 'not-found' } as const;

/** The routes of webhooks. The key comes first and the rate second, as with the programs. */
export function createWebhookRoutes({ identify, enter, webhooks, clock }: WebhookRoutesDeps) {
  const answers = createAnswers(webhooks);

  function keyed(answer: (asked: Asked) => Response | Promise<Response>) {
    return ({ request, params }: Context): Response | Promise<Response> => {
      const identity = identify(carriedKey(request.headers, request.url));
      if (identity.kind !== 'known') return refusalResponse(identity);
      const entry = enter(identity.caller.keyId, clock.monotonic());
      if (entry.kind !== 'entered') return refusalResponse(entry);
      const { id = '', delivery = '' } = params ?? {};
      return answer({ account: identity.caller.accountId, id, delivery, request });
    };
  }
  const outcome = <T extends Parameters<typeof outcomeResponse>[0]>(
    act: (account: number, id: string) => T,
  ) => keyed(({ account, id }) => outcomeResponse(act(account, id)));
  const only = (allow: string) => () => refusalResponse({ kind: 'wrong-method', allow });
  const detail = (name: keyof typeof OPERATIONS) => ({ detail: OPERATIONS[name], parse: 'none' as const });
  const hidden = { detail: { hide: true }, parse: 'none' as const };

  return new Elysia()
    .get(WEBHOOKS_PATH, keyed(answers.list), detail('list'))
    .head(WEBHOOKS_PATH, keyed(answers.list), hidden)
    .post(WEBHOOKS_PATH, keyed(answers.create), detail('create'))
    .all(WEBHOOKS_PATH, only('GET, HEAD, POST'), hidden)
    .get(ONE, keyed(answers.find), detail('find'))
    .head(ONE, keyed(answers.find), hidden)
    .patch(ONE, keyed(answers.edit), detail('edit'))
    .delete(ONE, outcome(webhooks.remove), detail('remove'))
    .all(ONE, only('GET, HEAD, PATCH, DELETE'), hidden)
    .post(`${ONE}/pause`, outcome(webhooks.pause), detail('pause'))
    .all(`${ONE}/pause`, only('POST'), hidden)
    .post(`${ONE}/resume`, outcome(webhooks.resume), detail('resume'))
    .all(`${ONE}/resume`, only('POST'), hidden)
    .post(`${ONE}/rotation`, keyed(answers.rotate), detail('rotate'))
    .delete(`${ONE}/rotation`, outcome(webhooks.cancelRotation), detail('cancelRotation'))
    .all(`${ONE}/rotation`, only('POST, DELETE'), hidden)
    .post(`${ONE}/rotation/switch`, outcome(webhooks.switchNow), detail('switchNow'))
    .all(`${ONE}/rotation/switch`, only('POST'), hidden)
    .post(`${ONE}/test`, outcome(webhooks.sendTest), detail('sendTest'))
    .all(`${ONE}/test`, only('POST'), hidden)
    .post(`${ONE}/resend-failed`, keyed(answers.resendFailed), detail('resendFailed'))
    .all(`${ONE}/resend-failed`, only('POST'), hidden)
    .get(`${ONE}/deliveries`, keyed(answers.deliveries), detail('deliveries'))
    .head(`${ONE}/deliveries`, keyed(answers.deliveries), hidden)
    .all(`${ONE}/deliveries`, only('GET, HEAD'), hidden)
    .get(`${ONE}/deliveries/:delivery`, keyed(answers.delivery), detail('delivery'))
    .head(`${ONE}/deliveries/:delivery`, keyed(answers.delivery), hidden)
    .all(`${ONE}/deliveries/:delivery`, only('GET, HEAD'), hidden)
    .post(`${ONE}/deliveries/:delivery/resend`, keyed(answers.resend), detail('resend'))
    .all(`${ONE}/deliveries/:delivery/resend`, only('POST'), hidden);
}

function createAnswers(webhooks: Webhooks) {
  return {
    list: ({ account }: Asked) => jsonResponse({ webhooks: webhooks.list(account).map(webhookRecord) }),
    find: ({ account, id }: Asked) => {
      const webhook = webhooks.find(account, id);
      return webhook ? jsonResponse(webhookRecord(webhook)) : refusalResponse(NOT_FOUND);
    },
    create: async ({ account, request }: Asked) => {
      const read = await readSettings(request);
      if (read.kind !== 'read') return refusalResponse(read);
      const { url, ...more } = read.value;
      if (url === undefined) return refusalResponse({ kind: 'malformed-body', text: 'url is missing' });
      return outcomeResponse(await webhooks.create(account, { url, ...more }, request.signal));
    },
    edit: async ({ account, id, request }: Asked) => {
      const read = await readSettings(request);
      if (read.kind !== 'read') return refusalResponse(read);
      return outcomeResponse(await webhooks.edit(account, id, read.value, request.signal));
    },
    rotate: async ({ account, id, request }: Asked) => {
      const read = await readTakeover(request);
      if (read.kind !== 'read') return refusalResponse(read);
      return outcomeResponse(webhooks.rotate(account, id, read.value));
    },
    resendFailed: async ({ account, id, request }: Asked) => {
      const read = await readSince(request);
      if (read.kind !== 'read') return refusalResponse(read);
      return outcomeResponse(webhooks.resendAllFailed(account, id, read.value));
    },
    resend: ({ account, id, delivery }: Asked) => {
      const resent = webhooks.resendOne(account, id, delivery);
      return outcomeResponse(resent.kind === 'due' ? { kind: 'due', deliveries: 1 } : resent);
    },
    deliveries: ({ account, id, request }: Asked) => {
      const read = pageFrom(id, new URL(request.url).searchParams);
      if (read.kind !== 'page') return refusalResponse(read);
      const rows = webhooks.deliveries(account, read.page);
      if (rows === undefined) return refusalResponse(NOT_FOUND);
      const next_cursor = nextCursor(rows, read.page.limit);
      return jsonResponse({ deliveries: rows.map(deliveryRecord), next_cursor });
    },
    delivery: ({ account, id, delivery }: Asked) => {
      const found = webhooks.delivery(account, id, delivery);
      return found ? jsonResponse(deliveryDetail(found)) : refusalResponse(NOT_FOUND);
    },
  };
}
