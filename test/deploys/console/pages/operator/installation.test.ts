import { afterEach, describe, expect, test } from 'bun:test';
import type { Ownership } from '../../../../../deploys/accounts/ownership.ts';
import { startSeeded } from '../../seed.ts';
import { type Options, startWorld } from '../../world.ts';

const open: Disposable[] = [];
function kept<World extends Disposable>(world: World): World {
  open.push(world);
  return world;
}
afterEach(() => open.splice(0).forEach((world) => world[Symbol.dispose]()));

const seeded = () => kept(startSeeded());
const empty = (running?: Options['running']) => kept(startWorld(running && { running }));

/** What stands on a page of the seeded installation, in this order; and what does not. */
const SHOWN: readonly (readonly [path: string, texts: readonly string[], absent?: string])[] = [
  [
    'backends',
    [
      'Gateways reachable 1 of 2',
      'Active backends 2 of 3',
      '4 processes version 0.1.0',
      'fra-2 Active failing agave rpc, send 371,204,116 2 41 of 512 212 of 18,452 1.1%',
      'ams-archive Excluded lagging: 48 slots behind the others',
      'metrics address is unreachable (ECONNREFUSED)',
    ],
  ],
  ['traffic', ['getSlot 101,112 50% 606,672 2,000 139', 'Meridian Labs']],
  ['traffic?hours=24&by=refused', ['By rejections', 'Errors Little Fish DAO'], 'Northwind Trading'],
  [
    'queue',
    [
      'Ready 4 Oldest pending 30 s ago In flight 0 Scheduled 4 next in 9 min',
      'hooks.meridian.example 2 12 h ago',
      'Endpoint returned 503 3',
      'Host resolves to a non-public address 3',
    ],
  ],
  ['audit?account=blank-page', ['Account: create blank-page'], 'Little Fish'],
  ['audit?account=4', ['hackathon']],
  ['audit?actor=DANA@meridian.example', ['Key: create']],
  ['audit?actor=command-line', ['Command line'], 'hackathon'],
  ['audit?action=account.suspend', ['Harbour Analytics'], 'Northwind'],
  [
    'health',
    [
      'Gateway 10.0.0.3:9464 is unreachable (ECONNREFUSED).',
      'Redis 10.0.0.10:6379 is unreachable (ECONNREFUSED).',
      '1 operator does not use two-factor authentication.',
      'Last check 3 s ago Slot 1,234 Programs 45 Interval 60 s',
      'Backup Not managed by Sluice.',
      'ledger.db In use 912 MB 1.0 MB',
      'trial 5 10 250,000 20 1',
    ],
  ],
];

test('pages of the installation show what it has, what is wrong and why, filtered by their address', async () => {
  const { operator, ids } = seeded();
  expect(ids[3]).toBe(4);
  for (const [path, texts, absent] of SHOWN) {
    let { text: rest } = await operator.get(`/operator/${path}`);
    if (absent !== undefined) expect([path, rest]).toEqual([path, expect.not.stringContaining(absent)]);
    for (const text of texts) {
      expect([path, rest]).toEqual([path, expect.stringContaining(text)]);
      rest = rest.slice(rest.indexOf(text) + text.length);
    }
  }
});

describe('the queue', () => {
  test('links what fails', async () => {
    const { operator, ids } = seeded();
    const { html } = await operator.get('/operator/queue');
    expect(html).toContain(`href="/accounts/${ids[0]}/webhooks/wh0c2b1f0e9d8a7"`);
    expect(html).toContain(`href="/accounts/${ids[0]}/deliveries/019ab2c4-0100-7000-8000-000000000000"`);
  });

  test('says that deliveries are not sent', async () => {
    const deliveries = () => ({ isWell: false, sentence: '7 deliveries are due, the oldest for 9 minutes.' });
    const { text } = await empty({ deliveries }).operator.get('/operator/queue');
    expect(text).toContain('7 deliveries are due, the oldest for 9 minutes.');
    expect(text).toContain('All endpoints are healthy');
  });
});

describe('the audit log', () => {
  test('names people by e-mail, keys by name, and the command line', async () => {
    const world = seeded();
    const key = world.keys.page({ limit: 1 }).items[0];
    const at = { atMs: world.clock.now(), accountId: world.ids[0], subject: 'wh1' };
    const actor = { kind: 'key', keyId: key?.id as never } as const;
    world.note({ ...at, action: 'webhook.test', actor } as never); // an action of webhooks
    const { text } = await world.operator.get('/operator/audit');
    expect(text).toContain('production key of Meridian Labs Webhook: test wh1');
    expect(text).toContain('dana@meridian.example Key: create');
    expect(text).toContain(
      'op@example.com operator Account: credits add Little Fish DAO Added 100,000 credits',
    );
    expect(text).toContain('Command line User: create');
  });

  test('names an unknown filter at its field, and shows nothing', async () => {
    const world = seeded();
    const page = await world.operator.get('/operator/audit?account=nobody&actor=no@example.com');
    expect(page.errorAt('account')).toBe('No such account.');
    expect(page.errorAt('actor')).toBe('No user with this email.');
    expect(page.text).toContain('No matching entries');
  });
});

describe('health', () => {
  test('is good where nothing is wrong, and says that there is no Redis', async () => {
    const world = empty();
    world.store.run("UPDATE users SET totp_secret = x'00'");
    const { text } = await world.operator.get('/operator/health');
    expect(text).toContain('All systems healthy.');
    expect(text).toContain('Redis Not configured: limits apply per host');
  });

  test('says how accounts are published to other hosts, and what to do when they are not', async () => {
    const healthOf = async (publication: () => Ownership) =>
      (await empty({ publication }).operator.get('/operator/health')).text;
    expect(await healthOf(() => ({ kind: 'sole', isWhole: true }))).toContain('Accounts and keys Published');
    expect(await healthOf(() => ({ kind: 'cut-off' }))).toContain('Accounts and keys Redis unreachable');
    const held = await healthOf(() => ({ kind: 'waiting' }));
    expect(held).toContain('Accounts and keys Not published');
    expect(held).toContain('Stop one of the two.');
  });

  test('says what the watcher lacks', async () => {
    const health = { isWell: false, sentence: 'The programs have not been read from the chain yet.' };
    const watcher = () => ({ health, checkedAtMs: undefined, contextSlot: undefined, programs: 0 });
    const { text } = await empty({ watcher }).operator.get('/operator/health');
    expect(text).toContain('Unhealthy Last check None yet Slot Unknown');
    expect(text).toContain(health.sentence);
  });
});
