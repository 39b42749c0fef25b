import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { readApiKey } from '../../../../../shared/keys/api-key.ts';
import { COMMAND_LINE } from '../../../auth/people.ts';
import { type Customer, HOUR_MS, startWorld, type World } from '../../world.ts';

let world: World;
let acme: Customer;
beforeEach(() => {
  world = startWorld();
  acme = world.customer();
});
afterEach(() => world[Symbol.dispose]());

const PATH = '/accounts/1/keys';
const KEY = /sluice_[\w-]{20,}/;

/** The hidden id of the form on a page. */
const formId = async (path: string) => (await acme.get(path)).field('once') ?? '';

async function create(name = 'indexer') {
  const once = await formId(`${PATH}/new`);
  return { once, ...(await acme.post(`${PATH}/new`, { name, once })) };
}

describe('a new key', () => {
  test('is shown once, on the page after its form', async () => {
    const { status, to } = await create();
    expect(status).toBe(303);
    const [row] = world.keys.list('acme');
    expect(to).toStartWith(`${PATH}/${row?.id}?shown=`);
    expect(to).not.toMatch(KEY);
    const first = await acme.get(to);
    const [key = ''] = KEY.exec(first.text) ?? [];
    expect(readApiKey(key)).toBe(key as never); // the brand is what is tested
    expect(first.text).toContain('API key created.');
    const second = await acme.get(to);
    expect(second.html).not.toMatch(KEY);
    expect(second.text).toContain('The key has already been shown');
    expect((await acme.get(`${PATH}/${row?.id}`)).text).not.toContain('The key has already been shown');
  });

  test('is one, and is shown, when its form is sent twice', async () => {
    const { once, to } = await create();
    const again = await acme.post(`${PATH}/new`, { name: 'indexer', once });
    expect(world.keys.list('acme')).toHaveLength(1);
    expect(again.to).toBe(to.replace('&done=key-created', ''));
    expect((await acme.get(again.to)).text).toMatch(KEY);
  });
});

describe('the list of keys', () => {
  test('shows the state and the use of each', async () => {
    const used = world.addKey('indexer');
    world.addKey('spare');
    world.keys.revoke(world.addKey('leaked').id, COMMAND_LINE);
    world.count([
      { keyId: used.id, calls: 1_234, hoursAgo: 2 },
      { keyId: used.id, calls: 1_000_000, hoursAgo: 200 },
    ]);
    const { text } = await acme.get(PATH);
    for (const part of ['indexer', 'spare', 'leaked', 'Revoked', '1,234', used.key.slice(-4)])
      expect(text).toContain(part);
    expect(text).not.toContain('1,000,000');
  });

  test('has each key on one of its pages', async () => {
    for (let i = 0; i < 60; i++) world.addKey(`key ${i}`);
    const first = await acme.get(PATH);
    const second = await acme.get(first.older);
    const idsIn = ({ html }: typeof first) =>
      [...html.matchAll(/keys\/([0-9a-f]{16})"/g)].map(([, id]) => id);
    expect(idsIn(first)).toHaveLength(50);
    expect(new Set([...idsIn(first), ...idsIn(second)]).size).toBe(60);
    expect(second.text).toContain('← First page');
    expect((await acme.get(`${PATH}?before=nonsense`)).text).toContain('Older');
  });
});

describe('a rotation', () => {
  let id: string;
  let key: string;
  beforeEach(() => void ({ id, key } = world.addKey('indexer')));
  const rotate = async (grace: string, once?: string) =>
    acme.post(`${PATH}/${id}/rotate`, { grace, once: once ?? (await formId(`${PATH}/${id}`)) });

  test.each([
    ['1h', HOUR_MS],
    ['7d', 168 * HOUR_MS],
  ])(
    'with %s ends the old key then, shows the new one, and offers to revoke the old one',
    async (grace, ms) => {
      const page = await acme.get((await rotate(grace)).to);
      const [shown = ''] = KEY.exec(page.text) ?? [];
      expect([shown.length, shown === key]).toEqual([key.length, false]);
      expect(world.keys.find(id)).toMatchObject({ state: 'expiring', expiresAtMs: world.clock.now() + ms });
      expect(page.html).toContain(`href="${PATH}/${id}#revoke"`);
      expect((await acme.get(PATH)).text).toContain('Expiring');
    },
  );

  test('at once ends the old key at once', async () => {
    await rotate('0');
    expect(world.keys.find(id)?.state).toBe('expired');
  });

  test('of a key that ended is refused', async () => {
    const once = await formId(`${PATH}/${id}`);
    world.keys.revoke(id, COMMAND_LINE);
    const { status, page } = await rotate('0', once);
    expect([status, page.text]).toEqual([422, expect.stringContaining('The key is already revoked.')]);
  });
});

test('a key is renamed', async () => {
  const { id } = world.addKey('indexer');
  expect((await acme.post(`${PATH}/${id}/rename`, { name: ' archiver ' })).to).toBe(
    `${PATH}/${id}?done=key-renamed`,
  );
  expect(world.keys.find(id)?.name).toBe('archiver');
});

test('a key is revoked', async () => {
  const { id } = world.addKey('indexer');
  await acme.post(`${PATH}/${id}/revoke`, { confirm: 'indexer' });
  expect(world.keys.find(id)?.state).toBe('revoked');
  expect((await acme.get(`${PATH}/${id}`)).text).not.toContain('Revoke key');
});
