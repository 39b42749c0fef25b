import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { minuteAt } from '../../../../../deploys/usage/minutes.ts';
import { type AccountWorld, HOUR_MS, startAccountWorld } from '../../account-world.ts';
import { CUSTOMER } from '../../started.tsx';

let world: AccountWorld;
beforeEach(() => (world = startAccountWorld()));
afterEach(() => world[Symbol.dispose]());

const PATH = '/accounts/7/overview';
const textOf = (page: string) => page.replaceAll(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ');

describe('the overview', () => {
  test('of a new account says what to do first', async () => {
    const page = textOf(await world.page(PATH));
    expect(page).toContain('No active keys. Create one to use the RPC endpoint. Create a key');
    expect(page).toContain('250,000');
    expect(page).toContain('None used in the last 7 days');
    expect(page).toContain('No calls in the last 24 hours');
  });

  test('says how long credits last at the pace of the last 24 hours', async () => {
    world.spend(7, 190_000);
    world.count([{ calls: 20_000, credits: 20_000, charged: 20_000, hoursAgo: 3 }]);
    const page = textOf(await world.page(PATH));
    expect(page).toContain('60,000');
    expect(page).toContain("about 3 days left at the last 24 hours' rate");
  });

  test('warns of credits that end soon, and says when there are none', async () => {
    world.spend(7, 240_000);
    expect(textOf(await world.page(PATH))).toContain('10,000 credits remaining.');
    world.spend(7, 250_000);
    expect(textOf(await world.page(PATH))).toContain('No credits left: all calls are rejected with 402.');
  });

  test('says what is wrong: a suspended account, a plan that is no more, a failing webhook, a key that ends', async () => {
    const { id } = world.addKey('acme', 'indexer');
    world.keys.rotate(id, 24 * HOUR_MS, { kind: 'command-line' });
    const hook = world.addFailingWebhook(
      7,
      'https://hooks.example.com/s3cret',
      world.clock.now() - 3 * HOUR_MS,
    );
    world.store.run("UPDATE accounts SET suspended = 1, plan = 'gone' WHERE id = 7");
    const html = await world.page(PATH);
    const page = textOf(html);
    expect(page).toContain('The account is suspended: all API keys are rejected.');
    expect(page).toContain('Plan gone is no longer available');
    expect(page).toContain('The webhook at hooks.example.com has been failing for 3 h.');
    expect(page).toMatch(/The old key .*indexer.* expires in 24 h\./);
    expect(html).toContain(`/accounts/7/webhooks/${hook}`);
    expect(html).not.toContain('s3cret');
  });

  test('counts the last hour, and not what nobody counted', async () => {
    const now = minuteAt(world.clock.now());
    world.minutes.add(7, now - 2, { calls: 120, refused: 4, errors: 3 });
    world.minutes.add(8, now - 2, { calls: 7_777, refused: 0, errors: 0 });
    world.since.ms = world.clock.now() - 10 * 60_000;
    const html = await world.page(PATH);
    const page = textOf(html);
    expect(page).toContain('120 requests, 3 errors, 4 rejected.');
    expect(page).toContain('Peak minute: 2 requests/s · Plan limit: 5/s, burst 10');
    expect(page).toContain('Data since the service started at 2026-11-19 23:50:00');
    expect(page).not.toContain('7,777');
    const drawn = JSON.parse((/data-chart="([^"]+)"/.exec(html)?.[1] ?? '').replaceAll('&quot;', '"'));
    expect(drawn.series[0].values.slice(48)).toEqual([null, 0, 0, 0, 0, 0, 0, 0, 0, 117, 0, 0]);
  });

  test('says how fast answers began as bounds that hold', async () => {
    world.count([{ calls: 100, within10Ms: 60, within50Ms: 20, within250Ms: 16, slower: 4 }]);
    const page = textOf(await world.page(PATH));
    expect(page).toContain('Latency p50 ≤ 10 ms median, last 24 h');
    expect(page).toContain('Latency p95 ≤ 250 ms 95th percentile, last 24 h');
    world.count([{ calls: 100, slower: 100 }]);
    expect(textOf(await world.page(PATH))).toContain('Latency p95 > 1.00 s');
  });

  test('of an account for the program API alone speaks of no plan', async () => {
    using other = startAccountWorld({ ...CUSTOMER, accountId: 8 });
    const page = textOf(await other.page('/accounts/8/overview'));
    expect(page).toContain('Program API only');
    expect(page).toContain('Create one to use the program API.');
    expect(page).not.toContain('Plan limit');
  });
});
