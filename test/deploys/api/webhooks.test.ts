import { Value } from '@sinclair/typebox/value';
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { REQUESTS_MAX } from '../../../deploys/api/request-log.ts';
import { DeliveriesAnswer, WebhooksAnswer, WebhookSecretAnswer } from '../../../deploys/api/schema.ts';
import { createWebhookRoutes, WEBHOOKS_PATH } from '../../../deploys/api/webhook-routes.ts';
import { answered } from '../../fakes/scripted-send.ts';
import { addressOf } from '../../fakes/chain.ts';
import { until } from '../started.ts';
import { startWebhookApi } from '../webhooks/api.ts';
import { startWebhooks, URL_TEXT } from '../webhooks/started.ts';

let api: ReturnType<typeof startWebhookApi>;
beforeEach(() => void (api = startWebhookApi()));
afterEach(() => api[Symbol.asyncDispose]());

const raw = (path: string, init: RequestInit = {}) =>
  api.answer(
    new Request(`http://localhost${WEBHOOKS_PATH}${path}`, { headers: { 'x-token': api.key }, ...init }),
  );
const ABSENT = '00000000-0000-4000-8000-000000000000';

describe('webhooks over HTTP', () => {
  test('are made, listed, read, edited and deleted, and the secret is in the first answer alone (§4)', async () => {
    const [status, made] = await api.ask('POST', '', {
      url: URL_TEXT,
      programs: [addressOf('A')],
      description: 'mine',
    });
    expect(status).toBe(201);
    expect(
      [...Value.Errors(WebhookSecretAnswer, made)].filter(({ message }) => !message.includes('format')),
    ).toEqual([]);
    const { webhook, secret } = made;
    expect(webhook).toMatchObject({
      url: URL_TEXT,
      programs: [addressOf('A')],
      description: 'mine',
      state: 'active',
    });
    const [, all] = await api.ask('GET', '');
    expect(all).toEqual({ webhooks: [webhook] });
    expect(Object.keys(all.webhooks[0])).toEqual(
      Object.keys(WebhooksAnswer.properties.webhooks.items.properties),
    );
    expect(await api.ask('GET', `/${webhook.id}`)).toEqual([200, webhook]);
    for (const path of ['', `/${webhook.id}`, `/${webhook.id}/deliveries`])
      expect((await api.ask('HEAD', path))[0]).toBe(200);
    expect((await api.ask('HEAD', `/${ABSENT}`))[0]).toBe(404);
    const edited = await api.ask('PATCH', `/${webhook.id}`, { programs: null });
    expect(edited).toEqual([200, { ...webhook, programs: null }]);
    expect(await api.ask('DELETE', `/${webhook.id}`)).toEqual([204, undefined]);
    expect(await api.ask('GET', '')).toEqual([200, { webhooks: [] }]);
    expect(JSON.stringify(api.lines)).not.toContain(secret);
  });

  test('are tested ten times a minute and by no other way more, and refused while paused, leaving nothing (E34, §6 tests of a webhook)', async () => {
    const id = await api.made();
    expect(await api.ask('POST', `/${id}/pause`)).toMatchObject([200, { state: 'paused' }]);
    expect(await api.ask('POST', `/${id}/test`)).toEqual([409, { error: 'The webhook is paused' }]);
    expect((await api.ask('GET', `/${id}/deliveries`))[1].deliveries).toEqual([]);
    expect(await api.ask('POST', `/${id}/resume`)).toMatchObject([200, { state: 'active' }]);
    for (let i = 0; i < 10; i++) expect((await api.ask('POST', `/${id}/test`))[0]).toBe(202);
    const refused = await raw(`/${id}/test`, { method: 'POST' });
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '60']);
  });

  test('show a delivery with its attempt, what was answered as text within JSON that no browser runs (E32), and resend it', async () => {
    const page = '</script><script>alert(1)</script><img src=x onerror=alert(2)>';
    await api[Symbol.asyncDispose]();
    api = startWebhookApi(answered(200, page));
    const id = await api.made();
    await api.watch();
    const [status, { delivery_id: delivery }] = await api.ask('POST', `/${id}/test`);
    expect(status).toBe(202);
    const path = `/${id}/deliveries/${delivery}`;
    await api.clock.advance(1_000);
    await until(() => api.posts.length === 1);
    await api.clock.advance(1_000);
    const { headers } = await raw(path);
    expect(headers.get('content-type')).toMatch(/^application\/json/);
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('content-security-policy')).toBe("default-src 'none'");
    const [, shown] = await api.ask('GET', path);
    expect(shown).toMatchObject({ id: delivery, event: 'ping', state: 'delivered', last_status: 200 });
    expect(shown.body).toBe(api.posts[0]?.text ?? '');
    expect(shown.tries).toMatchObject([
      { n: 1, number: 1, trigger: 'auto', response_body: page, phases: {} },
    ]);
    expect(JSON.stringify(shown)).not.toContain('detail');
    expect(await api.ask('POST', `${path}/resend`)).toEqual([202, { deliveries: 1 }]);
    await api.clock.advance(1_000);
    await until(() => api.posts.length === 2);
  });

  test('have their secrets rotated, with a day to spare unless told otherwise', async () => {
    const id = await api.made();
    const [status, rotated] = await api.ask('POST', `/${id}/rotation`);
    expect([status, rotated.webhook.next_secret_at]).toEqual([200, '2026-11-21T00:00:00.000Z']);
    expect(rotated.secret).toMatch(/^whsec_/);
    expect(await api.ask('POST', `/${id}/rotation`, { takes_over: 'now' })).toMatchObject([
      409,
      { error: expect.stringContaining('pending') },
    ]);
    expect(await api.ask('DELETE', `/${id}/rotation`)).toMatchObject([200, { next_secret_at: null }]);
    expect(await api.ask('DELETE', `/${id}/rotation`)).toMatchObject([409, {}]);
    await api.ask('POST', `/${id}/rotation`, { takes_over: '1h' });
    expect(await api.ask('POST', `/${id}/rotation/switch`)).toMatchObject([200, { next_secret_at: null }]);
  });

  test('show their deliveries a page at a time, each once', async () => {
    const id = await api.made();
    const sent: string[] = [];
    for (let i = 0; i < 5; i++) sent.push((await api.ask('POST', `/${id}/test`))[1].delivery_id);
    const seen: string[] = [];
    let cursor: string | null = '';
    while (cursor !== null) {
      const [, page] = await api.ask('GET', `/${id}/deliveries?limit=2&state=queued&cursor=${cursor}`);
      expect(Object.keys(page)).toEqual(Object.keys(DeliveriesAnswer.properties));
      seen.push(...page.deliveries.map((delivery: { id: string }) => delivery.id));
      cursor = page.next_cursor;
    }
    expect(seen.toSorted()).toEqual(sent.toSorted());
    expect(await api.ask('GET', `/${id}/deliveries?state=failed`)).toEqual([
      200,
      { deliveries: [], next_cursor: null },
    ]);
    expect(await api.ask('POST', `/${id}/resend-failed`, { since: '2026-11-20T00:00:00Z' })).toEqual([
      202,
      { deliveries: 0 },
    ]);
  });
});

describe('a request is refused', () => {
  test('for its body', async () => {
    const programs = 'programs must be an array of strings, or null for all';
    for (const [body, status, error] of [
      [{ url: 'http://hooks.example.com' }, 422, 'The URL must start with https://'],
      [{ url: 'https://127.0.0.1/' }, 422, 'Host resolves to a non-public address'],
      [{ url: 'https://away.example.com/' }, 503, 'Host name could not be resolved'],
      [{}, 400, 'url is missing'],
      [{ url: 1 }, 400, 'url must be a string'],
      [{ url: URL_TEXT, programs: 'all' }, 400, programs],
      [{ url: URL_TEXT, programs: [1] }, 400, programs],
      [{ url: URL_TEXT, description: null }, 400, 'description must be a string'],
      [{ url: URL_TEXT, secret: 'mine' }, 400, 'Unknown member: secret'],
      [[], 400, 'The body must be a JSON object'],
    ])
      expect([body, ...(await api.ask('POST', '', body))]).toEqual([body, status, { error }]);
  });

  test('for a body or a query that cannot be read', async () => {
    const id = await api.made();
    const response = await raw('', { method: 'POST', body: '{' });
    expect([response.status, await response.json()]).toEqual([400, { error: 'The body is not JSON' }]);
    expect(await api.ask('POST', `/${id}/rotation`, { takes_over: 'toString' })).toMatchObject([400, {}]);
    expect(await api.ask('POST', `/${id}/resend-failed`, { since: 'yesterday' })).toMatchObject([400, {}]);
    for (const query of ['limit=0', 'limit=101', 'limit=1.5', 'state=lost', 'cursor=1'])
      expect(await api.ask('GET', `/${id}/deliveries?${query}`)).toMatchObject([400, {}]);
  });

  test('without a good key, whatever it asks for, and over the rate (§3.2 401, §3.2 429)', async () => {
    const id = await api.made();
    for (const [method, path] of await api.operations(id)) {
      expect(await api.ask(method, path, undefined, '')).toEqual([401, { error: 'Missing API key' }]);
      expect(await api.ask(method, path, undefined, 'x')).toEqual([
        401,
        { error: 'Invalid or inactive API key' },
      ]);
    }
    for (let i = 1; i < REQUESTS_MAX; i++) expect((await api.ask('GET', ''))[0]).toBe(200);
    expect(await api.ask('GET', '')).toEqual([429, { error: 'Rate limit exceeded' }]);
  });

  test('as if nothing were there, when the webhook or the delivery is of another account', async () => {
    const [mine, theirs] = [await api.made(), await api.made(api.otherKey)];
    const [, tested] = await api.ask('POST', `/${theirs}/test`, undefined, api.otherKey);
    const bodies: Record<string, object> = { 'resend-failed': { since: '2026-11-20T00:00Z' } };
    for (const delivery of [ABSENT, tested.delivery_id]) {
      for (const id of [theirs, mine, ABSENT]) {
        for (const [method, path] of await api.operations(id, delivery)) {
          if (path === '' || (id === mine && !path.includes(delivery))) continue;
          const body = bodies[path.split('/').at(-1) ?? ''];
          expect([path, await api.ask(method, path, body)]).toEqual([path, [404, { error: 'Not found' }]]);
        }
      }
      await api.clock.advance(60_000);
    }
    expect(await api.ask('GET', `/${theirs}`, undefined, api.otherKey)).toMatchObject([
      200,
      { id: theirs, state: 'active', next_secret_at: null },
    ]);
  });

  test('for a method that is not there, with those that are', async () => {
    const response = await raw(`/${ABSENT}`, { method: 'PUT' });
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD, PATCH, DELETE']);
  });

  test('in one sentence and with a line in the log when the service breaks', async () => {
    const id = await api.made();
    api.store.run('ALTER TABLE webhooks RENAME TO elsewhere');
    expect(await api.ask('GET', `/${id}`)).toEqual([500, { error: 'Internal error' }]);
    expect(JSON.stringify(api.lines)).toContain('a request failed');
  });

  test('in a sentence that says why when the disk is full, and changes nothing (E45)', async () => {
    const id = await api.made();
    const pages = api.store.query<{ page_count: number }, []>('PRAGMA page_count').get()?.page_count ?? 0;
    api.store.run(`PRAGMA max_page_count = ${pages}`);
    const description = 'x'.repeat(200);
    const answers: unknown[] = [];
    // Pages that are in use take a few more rows.
    for (let i = 0; i < 40; i++)
      answers.push(await api.ask('POST', '', { url: `${URL_TEXT}&${i}`, description }));
    const full =
      'The database cannot be written now: the disk is full. Nothing was changed. Try again in a moment.';
    expect(answers.at(-1)).toEqual([503, { error: full }]);
    expect(answers).not.toContainEqual([500, expect.anything()]);
    expect((await api.ask('GET', `/${id}`))[0]).toBe(200);
    api.store.run('PRAGMA max_page_count = 1000000');
    expect((await api.ask('POST', '', { url: URL_TEXT, description }))[0]).toBe(201);
  });
});

test('no change is taken while another copy of the database may be in use; reading goes on (E42)', async () => {
  const sentence = 'This database is older.';
  const by = { accountId: 1, actor: { kind: 'command-line' } } as const;
  using webhooks = startWebhooks();
  const app = createWebhookRoutes({
    admit: () => ({ kind: 'admitted', by }),
    webhooks,
    whyReadOnly: () => sentence,
  });
  const ask = async (method: string, path: string) => {
    const response = await app.handle(new Request(`http://localhost${WEBHOOKS_PATH}${path}`, { method }));
    return [response.status, await response.json()];
  };
  expect(await ask('GET', '')).toEqual([200, { webhooks: [] }]);
  const changes = [
    ['POST', ''],
    ['PATCH', `/${ABSENT}`],
    ['DELETE', `/${ABSENT}`],
    ['POST', `/${ABSENT}/test`],
  ] as const;
  for (const [method, path] of changes) expect(await ask(method, path)).toEqual([503, { error: sentence }]);
});

test('the OpenAPI document and the reference page have every operation', async () => {
  expect(await api.operations(ABSENT)).toHaveLength(15);
  const { paths } = await api.document();
  const described = Object.entries(paths).filter(([path]) => path.startsWith(WEBHOOKS_PATH));
  for (const operation of described.flatMap(([, item]) => Object.values(item)))
    expect(operation).toMatchObject({ responses: { 401: { headers: { 'WWW-Authenticate': {} } } } });
  const page = await (await api.answer(new Request('http://localhost/openapi'))).text();
  const ids = [...JSON.stringify(described).matchAll(/"operationId":"(\w+)"/g)].map(([, id]) => id);
  expect(new Set(ids).size).toBe(15);
  for (const text of [WEBHOOKS_PATH, ...ids]) expect(page).toContain(`<code>${text}</code>`);
});
