import { describe, expect, test } from 'bun:test';
import { type ClaimedDelivery, DUE } from '../../../deploys/outbox/claim.ts';
import { addressOf } from '../../fakes/chain.ts';
import { START_MS } from '../../fakes/chain-clock.ts';
import { startQueue, queueWith } from './queue.ts';

const counted = (claims: readonly ClaimedDelivery[], of: (claim: ClaimedDelivery) => string) => {
  const counts: Record<string, number> = {};
  for (const claim of claims) counts[of(claim)] = (counts[of(claim)] ?? 0) + 1;
  return counts;
};

describe('a claim', () => {
  test('leases the delivery and writes the attempt before anything is sent', () => {
    using queue = queueWith('one');
    queue.upgrade('A', 7);
    const [claim] = queue.outbox.claim(START_MS + 1_999, []);
    expect(claim).toMatchObject({ n: 1, number: 1, host: 'one.example.com' });
    const delivery = 'state, attempts, next_attempt_at_ms, lease_until_ms';
    expect(queue.values(`SELECT ${delivery} FROM deliveries`)).toEqual([
      ['attempting', 1, null, START_MS + 31_999],
    ]);
    const attempt = 'n, number, trigger, state, signed_at, started_at_ms';
    expect(queue.values(`SELECT ${attempt} FROM attempts`)).toEqual([
      [1, 1, 'auto', 'started', START_MS / 1_000 + 1, START_MS + 1_999],
    ]);
  });

  test('is the lease and the attempt, or neither (E19)', () => {
    using queue = queueWith('one');
    queue.upgrade('A', 7);
    queue.store.run(
      `CREATE TRIGGER full BEFORE INSERT ON attempts BEGIN SELECT RAISE(ABORT, 'no room'); END`,
    );
    expect(() => queue.outbox.claim(START_MS, [])).toThrow('no room');
    expect(queue.states()).toEqual(['queued']);
  });

  test('takes the oldest first, and nothing before it is due', () => {
    using queue = queueWith('one');
    queue.upgrade('A', 7, START_MS + 10);
    queue.upgrade('B', 8, START_MS + 5);
    queue.upgrade('C', 9, START_MS + 11);
    queue.trust();
    const claims = queue.outbox.claim(START_MS + 10, []);
    expect(claims.map(({ body }) => JSON.parse(Buffer.from(body).toString()).data.deploy_slot)).toEqual([
      8, 7,
    ]);
  });

  test('uses the current URL of the webhook, not that of the event (E29)', () => {
    using queue = queueWith('one');
    queue.upgrade('A', 7);
    queue.store.run("UPDATE webhooks SET url = 'https://new.example.com/', host = 'new.example.com'");
    expect(queue.outbox.claim(START_MS, [])).toMatchObject([
      { url: 'https://new.example.com/', host: 'new.example.com' },
    ]);
  });
});

test.each(Object.entries(DUE))('deliveries without room are skipped by index alone: %s', (_name, due) => {
  using queue = startQueue();
  const given = { nowMs: 1, retries: 1, accounts: '[7]', webhooks: '["a"]', hosts: '["b"]', limit: 1 };
  const plan = queue.store
    .query<{ detail: string }, typeof given>(`EXPLAIN QUERY PLAN ${due}`)
    .all(given)
    .map(({ detail }) => detail);
  expect(plan[0]).toBe('SEARCH d USING INDEX deliveries_due (due_at_ms<?)');
  expect(plan).toContain('SEARCH webhooks USING COVERING INDEX webhooks_on_host (host=?)');
  expect(plan).toContain('SEARCH webhooks USING INDEX webhooks_of_account (account_id=?)');
  const scanned = plan.filter((step) => step.startsWith('SCAN') && !step.includes('json_each'));
  expect(scanned).toEqual([]);
  expect(plan.filter((step) => /webhooks_failing/.test(step))).toHaveLength(1);
  expect(queue.values("SELECT name FROM pragma_index_info('deliveries_due')").flat()).toContain('webhook_id');
});

/** What is due is that of retries, of webhooks that do well. */
const makeRetries = (queue: ReturnType<typeof startQueue>, where = 'true') =>
  queue.store.run(`UPDATE deliveries SET state = 'retry_scheduled', attempts = 1 WHERE ${where}`);

describe('places', () => {
  test('are 640 in all, given out sixteen at a time', () => {
    using queue = startQueue();
    for (let i = 0; i < 700; i++) queue.addWebhook(`webhook ${i}`);
    queue.upgrade('A', 7);
    expect(queue.outbox.claim(START_MS - 1, [])).toEqual([]);
    const portion = queue.outbox.claim(START_MS, []);
    expect(portion).toHaveLength(16);
    const claims = [...portion, ...queue.claimAll(START_MS, portion)];
    expect(claims).toHaveLength(640);
    expect(queue.claimAll(START_MS, claims.slice(1))).toHaveLength(1);
    expect(queue.claimAll(START_MS, [])).toHaveLength(59);
  });

  test('are four to a webhook that succeeded within a minute, and one to any other', () => {
    using queue = queueWith('old');
    queue.trust(START_MS - 60_000);
    queue.addWebhook('new');
    for (const id of ['one', 'two']) queue.addWebhook(id);
    queue.store.run(
      `UPDATE webhooks SET last_success_at_ms = ${START_MS - 59_999} WHERE id IN ('one', 'two')`,
    );
    for (let slot = 1; slot <= 6; slot++) queue.upgrade('A', slot);
    const claims = queue.outbox.claim(START_MS, []);
    expect(counted(claims, ({ webhookId }) => webhookId)).toEqual({ one: 4, two: 4, new: 1, old: 1 });
    expect(queue.outbox.claim(START_MS, claims)).toEqual([]);
    const [first, ...others] = claims;
    const next = queue.outbox.claim(START_MS, others);
    expect(next.map(({ webhookId }) => webhookId)).toEqual([first?.webhookId ?? '']);
  });

  test('go to webhooks without one before those with one', () => {
    using queue = queueWith('one');
    for (let slot = 1; slot <= 4; slot++) queue.upgrade('A', slot);
    queue.addWebhook('two');
    queue.trust();
    queue.upgrade('B', 5, START_MS + 1);
    const claims = queue.claimAll(START_MS + 1, []);
    expect(claims.map(({ webhookId }) => webhookId)).toEqual(['one', 'two', 'one', 'one', 'one']);
  });

  test('are eight to a host, and 500 webhooks on one do not hide the others behind them (E28)', () => {
    using queue = startQueue();
    for (let i = 0; i < 500; i++) queue.addWebhook(`slow ${i}`, { host: 'slow.example.com' });
    queue.upgrade('A', 7, START_MS);
    for (let i = 0; i < 40; i++) queue.addWebhook(`other ${i}`);
    queue.upgrade('A', 8, START_MS + 1);
    const claims = queue.claimAll(START_MS + 1, []);
    const byHost = counted(claims, ({ host }) => host);
    expect(byHost['slow.example.com']).toBe(8);
    expect(claims).toHaveLength(48);
    expect(queue.outbox.claim(START_MS + 1, claims)).toEqual([]);
  });
});

describe('trust in a webhook is decided once a turn, whatever it was when its attempts began (E41)', () => {
  const underWayAndDue = (succeededAtMs: number) => {
    const queue = queueWith('one');
    for (let slot = 1; slot <= 40; slot++) queue.upgrade('A', slot);
    queue.trust(succeededAtMs);
    return { queue, claims: queue.outbox.claim(START_MS, []) };
  };

  test('trust that ran out leaves it one attempt at once', () => {
    const { queue, claims } = underWayAndDue(START_MS - 59_999);
    expect(claims).toHaveLength(4);
    expect(queue.outbox.claim(START_MS + 1, claims.slice(1))).toEqual([]);
    expect(queue.outbox.claim(START_MS + 1, [])).toHaveLength(1);
    queue[Symbol.dispose]();
  });

  test('trust that came, or that a clock set back brings again, counts at once', () => {
    const { queue, claims } = underWayAndDue(START_MS - 60_000);
    expect(claims).toHaveLength(1);
    queue.trust(START_MS);
    expect(queue.outbox.claim(START_MS, claims)).toHaveLength(3);
    queue[Symbol.dispose]();
  });
});

describe('places of webhooks whose last attempt failed (E35)', () => {
  const fail = (queue: ReturnType<typeof startQueue>) =>
    queue.store.run('UPDATE webhooks SET failing_since_ms = 1');

  test('are two to a host, beside those that do well there', () => {
    using queue = startQueue();
    for (let i = 0; i < 9; i++) queue.addWebhook(`dead ${i}`, { host: 'one.example.com' });
    fail(queue);
    queue.upgrade('A', 1);
    const claims = queue.claimAll(START_MS, []);
    expect(claims).toHaveLength(2);
    for (let i = 0; i < 9; i++) queue.addWebhook(`well ${i}`, { host: 'one.example.com' });
    queue.upgrade('A', 2);
    expect(queue.claimAll(START_MS, claims)).toHaveLength(6);
  });

  test('are 32 to an account and 128 in all, and the oldest of them delays nothing of others', () => {
    using queue = startQueue();
    for (let i = 0; i < 500; i++) queue.addWebhook(`dead ${i}`, { account: 1 + (i % 5) });
    fail(queue);
    queue.upgrade('A', 1);
    for (let i = 0; i < 10; i++) queue.addWebhook(`well ${i}`, { account: 1 });
    queue.upgrade('A', 2, START_MS + 1);
    const claims = queue.claimAll(START_MS + 1, []);
    expect(claims.slice(0, 10).map(({ webhookId }) => webhookId.slice(0, 4))).toEqual(Array(10).fill('well'));
    expect(claims).toHaveLength(10 + 128);
    const dead = claims.slice(10);
    expect(Math.max(...Object.values(counted(dead, ({ accountId }) => `${accountId}`)))).toBeLessThanOrEqual(
      32,
    );
    expect(dead.every(({ isFailing }) => isFailing)).toBe(true);
  });
});

describe('places of accounts', () => {
  /** Deliveries of each account, due one after the other: the first account's are the oldest. */
  function withBacklogs(queue: ReturnType<typeof startQueue>, accounts: readonly number[], each = 700) {
    for (const account of accounts)
      for (let i = 0; i < each; i++)
        queue.addWebhook(`${account}-${i}`, { account, programs: [addressOf(`of ${account}`)] });
    for (const account of accounts) queue.upgrade(`of ${account}`, 1, START_MS + account);
  }
  const byAccount = (claims: readonly ClaimedDelivery[]) =>
    counted(claims, ({ accountId }) => `${accountId}`);
  const NOW_MS = START_MS + 1_000;

  test('go to a waiting account up to an even share, whatever is older', () => {
    using queue = startQueue();
    withBacklogs(queue, [1]);
    const underWay = queue.claimAll(NOW_MS, []);
    withBacklogs(queue, [2]);
    // Attempts end eight by eight, each as the longest under way.
    const next: ClaimedDelivery[] = [];
    for (let ended = 8; ended <= 216; ended += 8)
      next.push(...queue.outbox.claim(NOW_MS + 250 * ended, [...underWay.slice(ended), ...next]));
    const accounts = next.map(({ accountId }) => accountId);
    expect(accounts).toEqual([...Array.from({ length: 213 }, () => 2), 1, 1, 1]);
  });

  test('are reserved for first attempts beside the retries of another account', () => {
    using queue = startQueue();
    withBacklogs(queue, [1]);
    makeRetries(queue);
    const claims = queue.claimAll(NOW_MS, []);
    withBacklogs(queue, [9]);
    makeRetries(queue, "state = 'queued' AND webhook_id = '9-0'");
    expect(byAccount(claims)).toEqual({ 1: 480 });
    const next = queue.claimAll(NOW_MS, claims);
    expect([byAccount(next), new Set(next.map(({ number }) => number))]).toEqual([{ 9: 160 }, new Set([1])]);
  });
});
