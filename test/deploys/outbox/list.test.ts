import { afterAll, beforeAll, describe, expect, test, afterEach, beforeEach } from 'bun:test';
import { createAudit } from '../../../deploys/accounts/audit.ts';
import {
  createAccountDeliveries,
  type DeliveryFilter,
  LOOKED_AT_MAX,
  createReadQueue,
} from '../../../deploys/outbox/list.ts';
import { createSendAgain } from '../../../deploys/webhooks/send-again.ts';
import { createWebhookRows } from '../../../deploys/webhooks/webhook.ts';
import { systemClock } from '../../../shared/clock.ts';
import { START_MS } from '../../fakes/chain-clock.ts';
import { answered, failedWith } from '../../fakes/scripted-send.ts';
import { explained } from '../explained.ts';
import { startQueue } from './queue.ts';

const DELIVERIES = 100_000;
const WEBHOOKS = 10;
const LONG_MS = 60_000;

/** A hundred thousand deliveries of account 1 over ten webhooks, and some of account 2; one in 20,000 failed. */
const queue = startQueue();
const deliveries = createAccountDeliveries(queue.store);
const idOf = (account: number, i: number) =>
  `${account}${String(i).padStart(7, '0')}-0000-4000-8000-000000000000`;

beforeAll(() => {
  for (const account of [1, 2])
    for (let i = 0; i < WEBHOOKS; i++) {
      queue.addWebhook(`${account}/${i}`, { host: `h${i}.example.com` });
      queue.store.run('UPDATE webhooks SET account_id = ? WHERE id = ?', [account, `${account}/${i}`]);
    }
  const add = queue.store.prepare(`
    INSERT INTO deliveries (id, webhook_id, account_id, event_kind, dedupe_key, state, created_at_ms, finished_at_ms)
    VALUES (?1, ?2, ?3, 'ping', ?1, ?4, ?5, ?5)`);
  queue.store.transaction(() => {
    for (const account of [1, 2])
      for (let i = 0; i < (account === 1 ? DELIVERIES : 1_000); i++) {
        const state = i % 20_000 === 0 ? 'failed' : 'delivered';
        add.run(idOf(account, i), `${account}/${i % WEBHOOKS}`, account, state, START_MS + Math.floor(i / 3));
      }
  })();
}, LONG_MS);
afterAll(() => queue[Symbol.dispose]());

/** Every page of a list, from the first to the last. */
function pages(accountId: number, wish: Partial<DeliveryFilter>) {
  const found: (readonly { id: string }[])[] = [];
  for (let after: DeliveryFilter['after']; ;) {
    const page = deliveries.page(accountId, { limit: 100, ...wish, ...(after && { after }) });
    found.push(page.rows);
    if (page.next === undefined) return found;
    after = page.next;
  }
}

describe('the deliveries of an account', () => {
  test('come newest first, each once', () => {
    const ids = pages(1, {})
      .flat()
      .map(({ id }) => id);
    expect([ids.length, new Set(ids).size]).toEqual([DELIVERIES, DELIVERIES]);
    expect(deliveries.page(1, { limit: 1_000 }).rows).toHaveLength(100);
    expect(ids[0]?.slice(0, 8)).toBe(idOf(1, DELIVERIES - 1).slice(0, 8));
  });

  test('are read a bounded number per page, so that rare ones are found and no page takes long', () => {
    const found = pages(1, { state: 'failed' });
    expect(found.flat().map(({ id }) => id)).toEqual(
      [80_000, 60_000, 40_000, 20_000, 0].map((i) => idOf(1, i)),
    );
    expect(found).toHaveLength(DELIVERIES / LOOKED_AT_MAX + 1);
    const [first] = pages(1, { state: 'failed', sinceMs: START_MS + Math.floor(DELIVERIES / 3) - 10 });
    expect(first).toEqual([]);
  });

  test('are narrowed to a webhook of the account, and to no other’s', () => {
    expect(pages(1, { webhookId: '1/3', sinceMs: START_MS + 33_000 }).flat()).toHaveLength(100);
    expect(pages(1, { webhookId: '2/3' }).flat()).toEqual([]);
    expect(pages(2, { webhookId: '2/3' }).flat()).toHaveLength(100);
  });

  test('are found by the beginning of an id, and only the own ones', () => {
    expect(deliveries.search(1, idOf(1, 7).slice(0, 8)).map(({ id }) => id)).toEqual([idOf(1, 7)]);
    expect(deliveries.search(1, idOf(2, 7))).toEqual([]);
    for (const part of ['1000000', '', '%%%%%%%%%', "1' OR 1=1 --"])
      expect(deliveries.search(1, part)).toEqual([]);
    expect(deliveries.find(1, idOf(1, 7))?.url).toBe('https://h7.example.com/hook');
    for (const id of [idOf(2, 7), '', idOf(1, 7).slice(0, 8)]) expect(deliveries.find(1, id)).toBeUndefined();
  });

  test('of one webhook come in full pages, however rare those that match', () => {
    const deps = {
      store: queue.store,
      rows: createWebhookRows(queue.store),
      clock: systemClock,
      audit: createAudit(queue.store),
    };
    const all = createSendAgain(deps, queue.enqueue, () => {});
    const failed = { webhookId: '1/0', state: 'failed' } as const;
    const first = all.deliveries(1, { ...failed, limit: 3 }) ?? [];
    expect(first.map(({ id }) => id)).toEqual([80_000, 60_000, 40_000].map((i) => idOf(1, i)));
    const rest = all.deliveries(1, { ...failed, limit: 3, after: first[2] ?? { createdAtMs: 0, id: '' } });
    expect(rest?.map(({ id }) => id)).toEqual([20_000, 0].map((i) => idOf(1, i)));
    expect(all.deliveries(2, { ...failed, limit: 3 })).toBeUndefined();
  });

  test('of a deleted webhook are gone', () => {
    queue.store.run('UPDATE webhooks SET deleted_at_ms = 1 WHERE id = ?', ['1/9']);
    expect(deliveries.find(1, idOf(1, 9))).toBeUndefined();
    const [page] = pages(1, { webhookId: '1/9' });
    expect(page).toEqual([]);
    queue.store.run('UPDATE webhooks SET deleted_at_ms = NULL WHERE id = ?', ['1/9']);
  });

  test('are read by an index, and none of it is sorted', () => {
    const all = explained(queue.store, createAccountDeliveries);
    expect(all).toHaveLength(9);
    for (const { sql, steps } of all) {
      expect([sql, steps.filter((step) => /SCAN|TEMP B-TREE/.test(step))]).toEqual([sql, []]);
    }
  });
});

let fresh: ReturnType<typeof startQueue>;
beforeEach(() => (fresh = startQueue()));
afterEach(() => fresh[Symbol.dispose]());
const read = () => createReadQueue(fresh.store);

describe('the queue', () => {
  test('shows what is due, in flight, due later, and waiting for its block time', () => {
    for (const id of ['a', 'b']) fresh.addWebhook(id);
    fresh.upgrade('one', 5, START_MS);
    fresh.upgrade('two', 6, START_MS, false);
    const [claim] = fresh.outbox.claim(START_MS, []);
    expect(read().state(START_MS + 1)).toMatchObject({ due: 0, inFlight: 2, eventsWaiting: 1 });
    fresh.end(claim, answered(503), START_MS + 10);
    const state = read().state(START_MS + 20);
    expect(state).toMatchObject({ due: 0, inFlight: 1, later: 1 });
    const nextMs = state.nextDueAtMs ?? 0;
    expect(nextMs).toBeGreaterThan(START_MS + 20);
    expect(read().state(nextMs)).toMatchObject({ due: 1, oldestDueAtMs: nextMs, later: 0 });
  });

  test('shows failed and blocked attempts, newest first, and their errors', () => {
    fresh.addWebhook('a');
    for (const [i, sent] of [answered(503), failedWith('blocked_address'), answered(200)].entries()) {
      fresh.upgrade('A', i + 5, START_MS + i);
      fresh.end(fresh.outbox.claim(START_MS + i, [])[0], sent, START_MS + i);
    }
    const { wrongAttempts, reasons } = read();
    expect(wrongAttempts(9)).toMatchObject([
      { webhookId: 'a', accountId: 1, host: 'a.example.com', state: 'blocked', error: 'blocked_address' },
      { state: 'failed', error: 'http_503', number: 1, deliveryState: 'retry_scheduled' },
    ]);
    expect(wrongAttempts(1)).toHaveLength(1);
    expect(reasons('failed', 0)).toEqual([{ reason: 'http_503', attempts: 1, lastAtMs: START_MS }]);
    expect(reasons('blocked', 0)).toMatchObject([{ reason: 'blocked_address', attempts: 1 }]);
    expect(reasons('failed', START_MS + 1)).toEqual([]);
  });
});

test('the state of the queue is read by partial indexes', () => {
  const statements = explained(fresh.store, createReadQueue);
  expect(statements).toHaveLength(11);
  const partial =
    'deliveries_due deliveries_leased events_waiting attempts_failed attempts_blocked webhooks_failing';
  const allowed = new RegExp(`INDEX (${partial.replaceAll(' ', '|')})\\b`);
  for (const { sql, steps } of statements) {
    const tables = steps.filter((step) => /(deliveries|events|attempts|webhooks)\b/.test(step));
    expect([sql, tables.length > 0, tables.filter((step) => !allowed.test(step))]).toEqual([sql, true, []]);
  }
});
