import { describe, expect, test } from 'bun:test';
import { createPrune } from '../../../deploys/outbox/prune.ts';
import { DELETED_MAX, WEBHOOKS_MAX } from '../../../deploys/webhooks/create.ts';
import type { Settings } from '../../../deploys/webhooks/settings.ts';
import { START_MS } from '../../fakes/chain-clock.ts';
import { addressOf } from '../../fakes/chain.ts';
import { byMe, HOUR_MS, ME, never, OTHER, startWebhooks, URL_TEXT } from './started.ts';

const [A, B, C] = [addressOf('A'), addressOf('B'), addressOf('C')];

describe('a webhook that is made', () => {
  test('gets the events of its programs, each named once, and no others', async () => {
    using webhooks = startWebhooks();
    const { programs } = await webhooks.made(ME, { programs: [B, A, B], description: 'both' });
    expect(programs).toEqual([B, A]);
    for (const name of ['A', 'C']) webhooks.queue.upgrade(name, 7);
    expect(webhooks.queue.states()).toEqual(['queued']);
  });

  test.each([
    [{ url: 'http://hooks.example.com' }, 'The URL must start with https://'],
    [{ url: 'https://inside.example.com/' }, 'Host resolves to a non-public address'],
    [{ url: 'https://nothing.example.com/' }, 'Host name does not resolve'],
    [{ programs: [] }, 'Select at least one program, or null for all'],
    [{ programs: [A, 'x'.repeat(99)] }, `Invalid program_id: ${'x'.repeat(64)}…`],
    [{ programs: [A, C] }, `The program is not watched: ${C}`],
    [{ description: 'two\nlines' }, /^The description must be one line/],
    [{ description: 'x'.repeat(201) }, /^The description must be one line/],
  ])('is refused with the reason: %j', async (given, text) => {
    using webhooks = startWebhooks();
    webhooks.names.set('inside.example.com', ['93.184.215.14', '192.168.0.1']);
    webhooks.names.set('nothing.example.com', []);
    const [field = 'url'] = Object.keys(given) as (keyof Settings)[]; // the rows above
    const refused = {
      kind: 'unfit' as const,
      field,
      text: typeof text === 'string' ? text : expect.stringMatching(text),
    };
    expect(await webhooks.create(byMe, { url: URL_TEXT, ...given }, never)).toEqual(refused);
    const { id } = await webhooks.made();
    expect(await webhooks.edit(byMe, id, given, never)).toEqual(refused);
    expect(webhooks.list(ME)).toMatchObject([{ id, url: URL_TEXT, programs: null, description: '' }]);
  });

  test('is refused when the account has a hundred, however many are asked for at once', async () => {
    using webhooks = startWebhooks();
    const kinds = await Promise.all(
      Array.from({ length: WEBHOOKS_MAX + 2 }, () => webhooks.create(byMe, { url: URL_TEXT }, never)),
    );
    expect(kinds.filter(({ kind }) => kind === 'created')).toHaveLength(WEBHOOKS_MAX);
    expect(kinds.filter(({ kind }) => kind === 'too-many')).toHaveLength(2);
    await webhooks.made(OTHER);
    webhooks.remove(byMe, webhooks.list(ME)[0]?.id ?? '');
    await webhooks.made(ME);
  });

  test('is refused when the account has deleted four hundred that were sent something, until that is forgotten', async () => {
    using webhooks = startWebhooks();
    for (let nth = 0; nth < DELETED_MAX; nth++) {
      const { id } = await webhooks.made();
      webhooks.sendTest(byMe, id);
      webhooks.remove(byMe, id);
    }
    const again = () => webhooks.create(byMe, { url: URL_TEXT }, never);
    expect(await again()).toEqual({ kind: 'too-many' });
    await webhooks.made(OTHER);
    const prune = createPrune(webhooks.queue.store);
    while (prune(webhooks.clock.now() + 24 * HOUR_MS + 1));
    expect((await again()).kind).toBe('created');
  });
});

test('an edit changes what is given and leaves the rest', async () => {
  using webhooks = startWebhooks();
  const { id, secret } = await webhooks.made(ME, { programs: [A], description: 'mine' });
  await webhooks.clock.advance(HOUR_MS);
  const edit = async (given: object) => {
    const edited = await webhooks.edit(byMe, id, given, never);
    if (edited.kind !== 'edited') throw new Error(edited.kind);
    const { url, programs, description } = edited.webhook;
    return [url, programs, description];
  };
  const url = 'https://new.example.com:8443/';
  expect(await edit({})).toEqual([URL_TEXT, [A], 'mine']);
  expect(await edit({ url: 'https://NEW.example.com:8443' })).toEqual([url, [A], 'mine']);
  expect(await edit({ programs: null })).toEqual([url, null, 'mine']);
  expect(await edit({ description: '' })).toEqual([url, null, '']);
  expect(webhooks.find(ME, id)?.updatedAtMs).toBe(START_MS + HOUR_MS);
  expect(webhooks.signedWith(id)).toEqual([secret, undefined]);
});

test('pausing skips what is open and what comes, and resuming lets new events through', async () => {
  using webhooks = startWebhooks();
  const { id } = await webhooks.made();
  for (const slot of [7, 8]) {
    webhooks.queue.upgrade('A', slot);
    const webhook = { pausedAtMs: START_MS };
    expect(webhooks.pause(byMe, id)).toMatchObject({ kind: 'paused', webhook });
    await webhooks.clock.advance(1_000);
  }
  expect(webhooks.resume(byMe, id)).toMatchObject({ kind: 'resumed', webhook: { pausedAtMs: null } });
  webhooks.queue.upgrade('A', 9);
  expect(webhooks.queue.states()).toEqual(['skipped', 'skipped', 'queued']);
});

test('a webhook that is deleted has its open deliveries cancelled and its secrets forgotten, and leaves no row if it had none', async () => {
  using webhooks = startWebhooks();
  const { id } = await webhooks.made();
  webhooks.queue.upgrade('A', 7);
  webhooks.rotate(byMe, id, '24h');
  expect(webhooks.remove(byMe, id)).toEqual({ kind: 'removed' });
  expect(webhooks.queue.states()).toEqual(['cancelled']);
  expect(webhooks.queue.values('SELECT hex(secret_ct), next_secret_ct FROM webhooks')).toEqual([['', null]]);
  expect(() => webhooks.signedWith(id)).toThrow('does not exist');
  expect(webhooks.list(ME)).toEqual([]);
  expect(webhooks.remove(byMe, id)).toEqual({ kind: 'no-webhook' });
  webhooks.remove(byMe, (await webhooks.made()).id);
  expect(webhooks.queue.values('SELECT id FROM webhooks')).toEqual([[id]]);
});

test('no name is looked up for the webhook of another account', async () => {
  using webhooks = startWebhooks();
  const { id } = await webhooks.made(OTHER);
  const asked = webhooks.asked.length;
  const edited = await webhooks.edit(byMe, id, { url: 'https://spy.example.com/' }, never);
  expect([edited.kind, webhooks.asked.length]).toEqual(['no-webhook', asked]);
});
