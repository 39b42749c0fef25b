import { expect, test } from 'bun:test';
import { WEBHOOKS_PATH } from '../../../deploys/api/webhook-routes.ts';
import { createPrune, IDEMPOTENCY_KEPT_MS } from '../../../deploys/outbox/prune.ts';
import { startWebhookApi } from '../webhooks/api.ts';
import { URL_TEXT } from '../webhooks/started.ts';

/** Makes a webhook under an Idempotency-Key; the status, whether it says that it was made before, and the body. */
async function make(
  api: ReturnType<typeof startWebhookApi>,
  idempotencyKey: string,
  body: object = { url: URL_TEXT },
  key = api.key,
) {
  const headers = { 'x-token': key, 'idempotency-key': idempotencyKey };
  const init = { method: 'POST', headers, body: JSON.stringify(body) };
  const response = await api.answer(new Request(`http://localhost${WEBHOOKS_PATH}`, init));
  const answer = (await response.json()) as any; // oxlint-disable-line no-explicit-any -- its members are checked where they are used
  return { status: response.status, replayed: response.headers.get('idempotency-replayed'), answer };
}

const countOf = async (api: ReturnType<typeof startWebhookApi>, key = api.key) =>
  (await api.ask('GET', '', undefined, key))[1].webhooks.length;

test('M7 the same Idempotency-Key and body give the same webhook and secret with 201, and no second one', async () => {
  await using api = startWebhookApi();
  const first = await make(api, '"7f3c"', { url: URL_TEXT, description: 'mine' });
  expect([first.status, first.replayed]).toEqual([201, null]);
  const again = await make(api, '7f3c', { description: 'mine', programs: null, url: URL_TEXT });
  expect(again).toEqual({ status: 201, replayed: 'true', answer: first.answer });
  expect(await countOf(api)).toBe(1);
  expect(JSON.stringify(api.lines)).not.toContain(first.answer.secret);
});

test('M7 the same key with another body is 422, and with no header every request makes one', async () => {
  await using api = startWebhookApi();
  await make(api, '"one"');
  const other = await make(api, '"one"', { url: `${URL_TEXT}/other` });
  expect([other.status, other.answer]).toEqual([
    422,
    { error: 'The Idempotency-Key was used with another body' },
  ]);
  await api.made();
  await api.made();
  expect(await countOf(api)).toBe(3);
});

test('M7 of two requests at once with one key one makes the webhook, the other is 409', async () => {
  await using api = startWebhookApi();
  const both = await Promise.all([make(api, '"two"'), make(api, '"two"')]);
  expect(both.map(({ status }) => status).toSorted()).toEqual([201, 409]);
  expect(both.find(({ status }) => status === 409)?.answer).toEqual({
    error: 'Another request with this Idempotency-Key is in progress',
  });
  expect((await make(api, '"two"')).replayed).toBe('true');
  expect(await countOf(api)).toBe(1);
});

test('M7 a key is its account’s alone, and one that was refused can be used again', async () => {
  await using api = startWebhookApi();
  const mine = await make(api, '"three"');
  const theirs = await make(api, '"three"', { url: URL_TEXT }, api.otherKey);
  expect([theirs.status, theirs.replayed]).toEqual([201, null]);
  expect(theirs.answer.webhook.id).not.toBe(mine.answer.webhook.id);
  expect((await make(api, '"four"', { url: 'https://away.example.com/' })).status).toBe(503);
  expect((await make(api, '"four"')).status).toBe(201);
});

test('M7 a key is forgotten after a day, and a webhook that was deleted is not made again before', async () => {
  await using api = startWebhookApi();
  const first = await make(api, '"five"');
  await api.ask('DELETE', `/${first.answer.webhook.id}`);
  expect(await make(api, '"five"')).toMatchObject({
    status: 409,
    answer: { error: 'The webhook was already created' },
  });
  const keys = () => api.store.query('SELECT 1 FROM webhook_idempotency').all().length;
  const prune = createPrune(api.store);
  await api.clock.advance(IDEMPOTENCY_KEPT_MS - 1);
  while (prune(api.clock.now()));
  expect(keys()).toBe(1);
  await api.clock.advance(1);
  expect((await make(api, '"five"')).replayed).toBe(null);
  await api.clock.advance(IDEMPOTENCY_KEPT_MS + 1);
  while (prune(api.clock.now()));
  expect(keys()).toBe(0);
});

test('M7 a header that is no key is refused, and the document names the header', async () => {
  await using api = startWebhookApi();
  const error = 'Idempotency-Key must be 1 to 255 printable ASCII characters in quotes';
  for (const key of ['""', '"a"b', 'ü', 'x'.repeat(256), '"a\\b"'])
    expect(await make(api, key)).toMatchObject({ status: 400, answer: { error } });
  expect((await api.document()).paths[WEBHOOKS_PATH]?.['post']).toMatchObject({
    parameters: [{ name: 'Idempotency-Key', in: 'header', required: false }],
  });
});
