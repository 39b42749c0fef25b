import { describe, expect, test } from 'bun:test';
import { type Claim, DUE } from '../../../deploys/outbox/claim.ts';
import { addressOf } from '../../fakes/chain.ts';
import { START_MS } from '../../fakes/chain-clock.ts';
import { answered } from '../../fakes/scripted-send.ts';
import { startQueue } from './queue.ts';

const counted = (claims: readonly Claim[], of: (claim: Claim) => string) => {
  const counts: Record<string, number> = {};
  for (const claim of claims) counts[of(claim)] = (counts[of(claim)] ?? 0) + 1;
  return counts;
};

describe('a claim', () => {
  test('leases the delivery and writes the attempt before anything is sent', () => {
    using queue = startQueue();
    queue.addWebhook('one');
    queue.upgrade('A', 7);
    const [claim] = queue.outbox.claim(START_MS + 1_999, []);
    expect(claim).toMatchObject({
      n: 1,
      number: 1,
      url: 'https://one.example.com/hook',
      host: 'one.example.com',
    });
    expect(queue.rows('SELECT state, attempts, next_attempt_at_ms, lease_until_ms FROM deliveries')).toEqual([
      { state: 'attempting', attempts: 1, next_attempt_at_ms: null, lease_until_ms: START_MS + 31_999 },
    ]);
    expect(queue.rows('SELECT n, number, trigger, state, signed_at, started_at_ms FROM attempts')).toEqual([
      {
        n: 1,
        number: 1,
        trigger: 'auto',
        state: 'started',
        signed_at: START_MS / 1_000 + 1,
        started_at_ms: START_MS + 1_999,
      },
    ]);
  });

  test('is made once: what is leased is nobody else’s (E24, without the lock)', () => {
    using queue = startQueue();
    for (const id of ['one', 'two']) queue.addWebhook(id);
    queue.upgrade('A', 7);
    expect([queue.outbox.claim(START_MS, []).length, queue.outbox.claim(START_MS, []).length]).toEqual([
      2, 0,
    ]);
  });

  test('takes the oldest first, and nothing that is not due', () => {
    using queue = startQueue();
    queue.addWebhook('one');
    queue.upgrade('A', 7, START_MS + 10);
    queue.upgrade('B', 8, START_MS + 5);
    queue.upgrade('C', 9, START_MS + 11);
    const claims = queue.outbox.claim(START_MS + 10, []);
    expect(claims.map(({ body }) => JSON.parse(Buffer.from(body).toString()).data.deploy_slot)).toEqual([
      8, 7,
    ]);
  });

  test('goes to the URL of this moment, not of the event (E29)', () => {
    using queue = startQueue();
    queue.addWebhook('one');
    queue.upgrade('A', 7);
    queue.store.run("UPDATE webhooks SET url = 'https://new.example.com/', host = 'new.example.com'");
    expect(queue.outbox.claim(START_MS, [])).toMatchObject([
      { url: 'https://new.example.com/', host: 'new.example.com' },
    ]);
  });
});

test('who has no room left is passed over by index alone', () => {
  using queue = startQueue();
  const given = { nowMs: 1, again: 1, accounts: '[7]', webhooks: '["a"]', hosts: '["b"]', limit: 1 };
  const plan = queue.store
    .query<{ detail: string }, typeof given>(`EXPLAIN QUERY PLAN ${DUE}`)
    .all(given)
    .map(({ detail }) => detail);
  expect(plan[0]).toBe('SEARCH d USING INDEX deliveries_due (due_at_ms<?)');
  expect(plan).toContain('SEARCH webhooks USING COVERING INDEX webhooks_on_host (host=?)');
  expect(plan).toContain('SEARCH webhooks USING INDEX webhooks_of_account (account_id=?)');
  expect(plan.filter((step) => step.startsWith('SCAN') && !step.includes('json_each'))).toEqual([]);
  expect(queue.values("SELECT name FROM pragma_index_info('deliveries_due')").flat()).toContain('webhook_id');
});

describe('places', () => {
  test('are 64 in all', () => {
    using queue = startQueue();
    for (let i = 0; i < 70; i++) queue.addWebhook(`webhook ${i}`);
    queue.upgrade('A', 7);
    const claims = queue.outbox.claim(START_MS, []);
    expect(claims).toHaveLength(64);
    expect(queue.outbox.claim(START_MS, claims)).toEqual([]);
    expect(queue.outbox.claim(START_MS, claims.slice(1))).toHaveLength(1);
    expect(queue.outbox.claim(START_MS, [])).toHaveLength(5);
  });

  test('are four to a webhook', () => {
    using queue = startQueue();
    queue.addWebhook('one');
    queue.addWebhook('two');
    for (let slot = 1; slot <= 6; slot++) queue.upgrade('A', slot);
    const claims = queue.outbox.claim(START_MS, []);
    expect(counted(claims, ({ webhookId }) => webhookId)).toEqual({ one: 4, two: 4 });
    expect(queue.outbox.claim(START_MS, claims)).toEqual([]);
    const [first, ...others] = claims;
    const next = queue.outbox.claim(START_MS, others);
    expect(next.map(({ webhookId }) => webhookId)).toEqual([first?.webhookId ?? '']);
  });

  test('are eight to a host, and 500 webhooks on one do not hide the others behind them (E28)', () => {
    using queue = startQueue();
    for (let i = 0; i < 500; i++) queue.addWebhook(`slow ${i}`, { host: 'slow.example.com' });
    queue.upgrade('A', 7, START_MS);
    for (let i = 0; i < 40; i++) queue.addWebhook(`other ${i}`);
    queue.upgrade('A', 8, START_MS + 1);
    const claims = queue.outbox.claim(START_MS + 1, []);
    const byHost = counted(claims, ({ host }) => host);
    expect(byHost['slow.example.com']).toBe(8);
    expect(claims).toHaveLength(48);
    expect(queue.outbox.claim(START_MS + 1, claims)).toEqual([]);
  });

  test('are kept for first attempts, a quarter of them', () => {
    using queue = startQueue();
    for (let i = 0; i < 64; i++) queue.addWebhook(`webhook ${i}`);
    queue.upgrade('A', 7);
    for (const claim of queue.outbox.claim(START_MS, [])) queue.end(claim, answered(500), START_MS);
    queue.upgrade('A', 8, START_MS + 30_001);
    const claims = queue.outbox.claim(START_MS + 30_001, []);
    expect(counted(claims, ({ number }) => `attempt ${number}`)).toEqual({
      'attempt 2': 48,
      'attempt 1': 16,
    });
  });

  test('may all go to first attempts', () => {
    using queue = startQueue();
    for (let i = 0; i < 64; i++) queue.addWebhook(`webhook ${i}`);
    queue.upgrade('A', 7);
    expect(queue.outbox.claim(START_MS, [])).toHaveLength(64);
  });
});

describe('places of accounts', () => {
  /** 300 deliveries of each account, due one after the other: the first account's are the oldest. */
  function withBacklogs(queue: ReturnType<typeof startQueue>, accounts: readonly number[]) {
    for (const account of accounts)
      for (let i = 0; i < 100; i++)
        queue.addWebhook(`${account}-${i}`, { account, programs: [addressOf(`of ${account}`)] });
    for (const account of accounts)
      for (let slot = 1; slot <= 3; slot++) queue.upgrade(`of ${account}`, slot, START_MS + account);
  }
  const byAccount = (claims: readonly Claim[]) => counted(claims, ({ accountId }) => `${accountId}`);
  const NOW_MS = START_MS + 1_000;

  test('are all of one that is alone', () => {
    using queue = startQueue();
    withBacklogs(queue, [1]);
    expect(byAccount(queue.outbox.claim(NOW_MS, []))).toEqual({ 1: 64 });
  });

  /** Attempts end one by one, each as the longest under way; gives the accounts that had their places. */
  function following(
    queue: ReturnType<typeof startQueue>,
    underWay: readonly Claim[],
    ends: number,
    fromMs = NOW_MS,
  ) {
    const next: Claim[] = [];
    for (let ended = 1; ended <= ends; ended++)
      next.push(...queue.outbox.claim(fromMs + 250 * ended, [...underWay.slice(ended), ...next]));
    return next.map(({ accountId }) => accountId);
  }

  test('become free for who waits, up to an even share, whatever is older', () => {
    using queue = startQueue();
    withBacklogs(queue, [1]);
    const underWay = queue.outbox.claim(NOW_MS, []);
    withBacklogs(queue, [2]);
    const accounts = following(queue, underWay, 22);
    expect(accounts).toEqual([...Array.from({ length: 21 }, () => 2), 1]);
  });

  test('become free for who waits beside ten that would take them all', () => {
    using queue = startQueue();
    withBacklogs(queue, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    let underWay: readonly Claim[] = [];
    // From turn to turn those who hold more wait for those who hold less.
    for (let turn = 0; turn < 20; turn++) {
      const kept = underWay.slice(16);
      underWay = [...kept, ...queue.outbox.claim(NOW_MS + 250 * turn, kept)];
    }
    expect(underWay).toHaveLength(64);
    withBacklogs(queue, [11]);
    expect(following(queue, underWay, 4, NOW_MS + 5_000)).toEqual([11, 11, 11, 11]);
  });

  test('go to the oldest for a quarter of a second after nobody waited, because looking costs', () => {
    using queue = startQueue();
    withBacklogs(queue, [1]);
    const [, ...others] = queue.outbox.claim(NOW_MS, []);
    const [, ...underWay] = [...others, ...queue.outbox.claim(NOW_MS, others)];
    withBacklogs(queue, [2]);
    expect(byAccount(queue.outbox.claim(NOW_MS + 249, underWay))).toEqual({ 1: 1 });
    expect(byAccount(queue.outbox.claim(NOW_MS + 250, underWay))).toEqual({ 2: 1 });
  });

  test('are kept for first attempts of others beside the retries of one', () => {
    using queue = startQueue();
    withBacklogs(queue, [1]);
    queue.store.run("UPDATE deliveries SET state = 'retry_scheduled', attempts = 1");
    const claims = queue.outbox.claim(NOW_MS, []);
    withBacklogs(queue, [9]);
    queue.store.run(
      "UPDATE deliveries SET state = 'retry_scheduled', attempts = 1 WHERE state = 'queued' AND webhook_id = '9-0'",
    );
    expect(byAccount(claims)).toEqual({ 1: 48 });
    const next = queue.outbox.claim(NOW_MS, claims);
    expect([byAccount(next), new Set(next.map(({ number }) => number))]).toEqual([{ 9: 16 }, new Set([1])]);
  });
});
