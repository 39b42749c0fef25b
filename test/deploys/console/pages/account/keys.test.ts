import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { readApiKey } from '../../../../../shared/keys/api-key.ts';
import { type AccountWorld, HOUR_MS, startAccountWorld } from '../../account-world.ts';

let world: AccountWorld;
beforeEach(() => (world = startAccountWorld()));
afterEach(() => world[Symbol.dispose]());

const PATH = '/accounts/7/keys';
const KEY = /sluice_[\w-]{20,}/;

/** The hidden id of the form on a page. */
async function formId(path: string): Promise<string> {
  const [, id] = /name="once" value="([^"]+)"/.exec(await world.page(path)) ?? [];
  if (id === undefined) throw new Error(`${path} has no form with an id`);
  return id;
}
const locationOf = (response: Response) => response.headers.get('location') ?? '';

async function create(name = 'indexer') {
  const once = await formId(`${PATH}/new`);
  return { once, response: await world.post(`${PATH}/new`, { name, once }) };
}

describe('a new key', () => {
  test('is shown on the page after its form, once', async () => {
    const { response } = await create();
    expect(response.status).toBe(303);
    const where = locationOf(response);
    const [row] = world.keys.list('acme');
    expect(where).toStartWith(`${PATH}/${row?.id}?shown=`);
    expect(where).not.toMatch(KEY);
    const first = await world.page(where);
    const [key = ''] = KEY.exec(first) ?? [];
    expect(readApiKey(key)).toBe(key as never); // the brand is what is tested
    expect(first).toContain('API key created.');
    const second = await world.page(where);
    expect(second).not.toMatch(KEY);
    expect(second).toContain('The key has already been shown');
    expect(await world.page(`${PATH}/${row?.id}`)).not.toContain('The key has already been shown');
    expect(await world.page(PATH)).not.toMatch(KEY);
  });

  test('is one, and is seen, when its form is sent twice before the answer came', async () => {
    const { once, response } = await create();
    const again = await world.post(`${PATH}/new`, { name: 'indexer', once });
    expect(world.keys.list('acme')).toHaveLength(1);
    expect(locationOf(again)).toBe(locationOf(response).replace('&done=key-created', ''));
    expect(await world.page(locationOf(again))).toMatch(KEY);
  });

  test('is not made by a form without its id, or with another’s text in place of it', async () => {
    for (const once of ['', 'x', '../../../../../../x']) {
      const response = await world.post(`${PATH}/new`, { name: 'indexer', once });
      expect([response.status, (await response.text()).includes('The form was incomplete')]).toEqual([
        422,
        true,
      ]);
    }
    expect(world.keys.list()).toEqual([]);
  });

  test.each(['', 'x'.repeat(65), 'a\u0007b'])('named %p is refused at its field', async (name) => {
    const { response } = await create(name);
    const page = await response.text();
    expect(response.status).toBe(422);
    expect(page).toContain('aria-describedby="name-error name-hint"');
    expect(page).toContain('1–64 printable characters');
    expect(world.keys.list()).toEqual([]);
  });
});

describe('the list of keys', () => {
  test('says how each stands and what went through it', async () => {
    const used = world.addKey('acme', 'indexer');
    world.addKey('acme', 'spare');
    world.keys.revoke(world.addKey('acme', 'leaked').id, { kind: 'command-line' });
    world.count([
      { keyId: used.id, calls: 1_234, hoursAgo: 2 },
      { keyId: used.id, calls: 1_000_000, hoursAgo: 200 },
    ]);
    const page = await world.page(PATH);
    for (const text of ['indexer', 'spare', 'leaked', 'Revoked', '1,234', used.key.slice(-4)])
      expect(page).toContain(text);
    expect(page).not.toContain('1,000,000');
  });

  test('without keys says how to get one', async () => {
    expect(await world.page(PATH)).toContain('No API keys yet');
    expect(await world.page(`${PATH}?search=x`)).toContain('No matching keys');
  });

  test('goes on where a page ended, and every key stands on one', async () => {
    for (let i = 0; i < 60; i++) world.addKey('acme', `key ${i}`);
    const first = await world.page(PATH);
    const [, older = ''] = /href="([^"]+)"[^>]*>Older/.exec(first) ?? [];
    const second = await world.page(older.replaceAll('&amp;', '&'));
    const idsIn = (page: string) => [...page.matchAll(/keys\/([0-9a-f]{16})"/g)].map(([, id]) => id);
    expect(idsIn(first)).toHaveLength(50);
    expect(new Set([...idsIn(first), ...idsIn(second)]).size).toBe(60);
    expect(second).toContain('← First page');
    expect(await world.page(`${PATH}?before=nonsense`)).toContain('Older');
  });
});

describe('a rotation', () => {
  const rotate = async (id: string, grace: string) =>
    world.post(`${PATH}/${id}/rotate`, { grace, once: await formId(`${PATH}/${id}`) });

  test.each([
    ['1h', HOUR_MS],
    ['24h', 24 * HOUR_MS],
    ['7d', 168 * HOUR_MS],
  ])(
    'with %s lets the old key end then, shows the new one, and offers to end the old one now',
    async (grace, ms) => {
      const { id, key } = world.addKey('acme', 'indexer');
      const response = await rotate(id, grace);
      const page = await world.page(locationOf(response));
      const [shown = ''] = KEY.exec(page) ?? [];
      expect([shown.length, shown === key]).toEqual([key.length, false]);
      expect(world.keys.find(id)).toMatchObject({ state: 'expiring', expiresAtMs: world.clock.now() + ms });
      expect(page).toContain(`href="${PATH}/${id}#revoke"`);
      expect(await world.page(PATH)).toContain('Expiring');
    },
  );

  test('at once ends the old key at once', async () => {
    const { id } = world.addKey('acme', 'indexer');
    await rotate(id, '0');
    expect(world.keys.find(id)?.state).toBe('expired');
  });

  test('that is sent twice makes one new key, which is seen', async () => {
    const { id } = world.addKey('acme', 'indexer');
    const once = await formId(`${PATH}/${id}`);
    await world.post(`${PATH}/${id}/rotate`, { grace: '24h', once });
    const again = await world.post(`${PATH}/${id}/rotate`, { grace: '24h', once });
    expect(world.keys.list('acme')).toHaveLength(2);
    expect(await world.page(locationOf(again))).toMatch(KEY);
  });

  test.each(['', 'for ever', 'toString'])('with the grace %p changes nothing', async (grace) => {
    const { id } = world.addKey('acme', 'indexer');
    const response = await rotate(id, grace);
    expect([response.status, world.keys.list('acme').length]).toEqual([422, 1]);
    expect(await response.text()).toContain('Choose when the old key expires.');
  });

  test('of a key that ended says so', async () => {
    const { id } = world.addKey('acme', 'indexer');
    const once = await formId(`${PATH}/${id}`);
    world.keys.revoke(id, { kind: 'command-line' });
    const response = await world.post(`${PATH}/${id}/rotate`, { grace: '0', once });
    expect([response.status, (await response.text()).includes('The key is already revoked.')]).toEqual([
      422,
      true,
    ]);
  });
});

test('a key is renamed, and not to what is no name', async () => {
  const { id } = world.addKey('acme', 'indexer');
  const response = await world.post(`${PATH}/${id}/rename`, { name: ' archiver ' });
  expect(locationOf(response)).toBe(`${PATH}/${id}?done=key-renamed`);
  expect(world.keys.find(id)?.name).toBe('archiver');
  expect((await world.post(`${PATH}/${id}/rename`, { name: '' })).status).toBe(422);
  expect(world.keys.find(id)?.name).toBe('archiver');
});

test('a key is revoked once its name was typed', async () => {
  const { id } = world.addKey('acme', 'indexer');
  const wrong = await world.post(`${PATH}/${id}/revoke`, { confirm: 'indexe' });
  expect([wrong.status, world.keys.find(id)?.state]).toEqual([422, 'active']);
  await world.post(`${PATH}/${id}/revoke`, { confirm: 'indexer' });
  expect(world.keys.find(id)?.state).toBe('revoked');
  const page = await world.page(`${PATH}/${id}`);
  expect(page).not.toContain('Revoke key');
});
