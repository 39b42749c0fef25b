import { afterEach, beforeEach, expect, test } from 'bun:test';
import { COMMAND_LINE } from '../../../auth/people.ts';
import { type Customer, startWorld, type World } from '../../world.ts';

let world: World;
let acme: Customer;
beforeEach(() => {
  world = startWorld();
  acme = world.customer();
});
afterEach(() => world[Symbol.dispose]());

const PATH = '/accounts/1/keys';
const KEY = /sluice_[\w-]{20,}/;

test('a new key is one, and is shown once, when its form is sent twice', async () => {
  const once = (await acme.get(`${PATH}/new`)).field('once') ?? '';
  const { to } = await acme.post(`${PATH}/new`, { name: 'indexer', once });
  const again = await acme.post(`${PATH}/new`, { name: 'indexer', once });
  expect(world.keys.list('acme')).toHaveLength(1);
  expect(again.to).toBe(to.replace('&done=key-created', ''));
  expect((await acme.get(again.to)).text).toMatch(KEY);
  const later = await acme.get(to);
  expect([KEY.test(later.html), later.text]).toEqual([false, expect.stringContaining('already been shown')]);
});

test('the list of keys shows the state and the use of each', async () => {
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

test('the page of a rotated key leads to the old one, and that of a revoked one takes no change', async () => {
  const { id } = world.addKey('indexer');
  const once = (await acme.get(`${PATH}/${id}`)).field('once') ?? '';
  const { to } = await acme.post(`${PATH}/${id}/rotate`, { grace: '1h', once });
  expect((await acme.get(to)).html).toContain(`href="${PATH}/${id}#revoke"`);
  world.keys.revoke(id, COMMAND_LINE);
  expect((await acme.get(`${PATH}/${id}`)).html).not.toContain('<form');
  const { status, page } = await acme.post(`${PATH}/${id}/rotate`, { grace: '0', once: 'b'.repeat(22) });
  expect([status, page.text]).toEqual([422, expect.stringContaining('The key is already revoked.')]);
});
