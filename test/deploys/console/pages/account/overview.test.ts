import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { COMMAND_LINE } from '../../../auth/people.ts';
import { type Customer, HOUR_MS, startWorld, type World } from '../../world.ts';

let world: World;
let acme: Customer;
beforeEach(() => {
  world = startWorld();
  acme = world.customer();
});
afterEach(() => world[Symbol.dispose]());

const overview = () => acme.get('/accounts/1/overview');

describe('the overview', () => {
  test('of a new account says what to do first', async () => {
    const { text } = await overview();
    expect(text).toContain('No active keys. Create one to use the RPC endpoint. Create a key');
    expect(text).toContain('250,000');
    expect(text).toContain('None used in the last 7 days');
    expect(text).toContain('No calls in the last 24 hours');
  });

  test('says how long credits last at the rate of the last 24 hours', async () => {
    world.spend(1, 190_000);
    world.count([{ calls: 20_000, credits: 20_000, charged: 20_000, hoursAgo: 3 }]);
    const { text } = await overview();
    expect(text).toContain('60,000');
    expect(text).toContain("about 3 days left at the last 24 hours' rate");
  });

  test('warns of credits that end soon, and says when there are none', async () => {
    world.spend(1, 240_000);
    expect((await overview()).text).toContain('10,000 credits remaining.');
    world.spend(1, 250_000);
    expect((await overview()).text).toContain('No credits left: all calls are rejected with 402.');
  });

  test('warns of suspension, a plan that is gone, a failing webhook and a key that ends', async () => {
    world.keys.rotate(world.addKey('indexer').id, 24 * HOUR_MS, COMMAND_LINE);
    const { id } = await world.addWebhook(acme.by, { url: 'https://hooks.example.com/s3cret' });
    world.store.run('UPDATE webhooks SET failing_since_ms = ?', [world.clock.now() - 3 * HOUR_MS]);
    world.store.run("UPDATE accounts SET suspended = 1, plan = 'gone'");
    const { html, text } = await overview();
    expect(text).toContain('The account is suspended: all API keys are rejected.');
    expect(text).toContain('Plan gone is no longer available');
    expect(text).toContain('The webhook at hooks.example.com has been failing for 3 h.');
    expect(text).toMatch(/The old key .*indexer.* expires in 24 h\./);
    expect(html).toContain(`/accounts/1/webhooks/${id}`);
    expect(html).not.toContain('s3cret');
  });

  test('shows the last hour since the service started, of its own account alone', async () => {
    const over = new AbortController();
    const maintained = world.maintain(over.signal);
    await world.clock.advance(0);
    world.count([
      { calls: 120, refused: 4, errors: 3 },
      { calls: 7_777, accountId: 2 },
    ]);
    await world.clock.advance(10 * 60_000);
    const page = await overview();
    over.abort();
    await maintained;
    expect(page.text).toContain('120 requests, 3 errors, 4 rejected.');
    expect(page.text).toContain('Peak minute: 2 requests/s · Plan limit: 5/s, burst 10');
    expect(page.text).toContain('Data since the service started at 2026-11-20 00:00:00');
    expect(page.text).not.toContain('7,777');
    expect(page.chart().series[0]?.values.slice(48)).toEqual([null, 117, ...Array(10).fill(0)]);
  });

  test('gives latencies as bounds that hold', async () => {
    world.count([{ calls: 100, within10Ms: 60, within50Ms: 20, within250Ms: 16, slower: 4 }]);
    const { text } = await overview();
    expect(text).toContain('Latency p50 ≤ 10 ms median, last 24 h');
    expect(text).toContain('Latency p95 ≤ 250 ms 95th percentile, last 24 h');
    world.count([{ calls: 100, slower: 100 }]);
    expect((await overview()).text).toContain('Latency p95 > 1.00 s');
  });

  test('of an account for the program API alone names no plan', async () => {
    const { text } = await world.customer('other', null).get('/accounts/2/overview');
    expect(text).toContain('Program API only');
    expect(text).toContain('Create one to use the program API.');
    expect(text).not.toContain('Plan limit');
  });
});
