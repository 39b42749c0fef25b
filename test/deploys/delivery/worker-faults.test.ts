import { describe, expect, test } from 'bun:test';
import { START_MS } from '../../fakes/chain-clock.ts';
import { answered, failedWith } from '../../fakes/scripted-send.ts';
import { startQueue } from '../outbox/queue.ts';
import { HOUR, MINUTE, SECOND, SOON, startSending, startWorker } from './working.ts';

const idsOf = (posts: readonly { id: string }[]) => posts.map(({ id }) => id);

describe('a process that dies', () => {
  test('after a POST and before its record sends once more under the same id, after the lease (E19)', async () => {
    using queue = startQueue();
    queue.addWebhook('one');
    queue.upgrade('A', 7);
    const [lost] = queue.outbox.claim(START_MS, []); // sent, and never recorded
    const work = startWorker(() => answered(200), { queue });
    await work.advance(29 * SECOND);
    expect(work.posts()).toEqual([]);
    await work.advance(6 * SECOND);
    expect(work.posts()[0]?.post.body).toEqual(lost?.body ?? new Uint8Array());
    expect(idsOf(work.posts())).toEqual([lost?.deliveryId ?? '']);
    expect(work.values('SELECT n, state FROM attempts')).toEqual([
      [1, 'interrupted'],
      [2, 'succeeded'],
    ]);
    expect(work.reaped).toEqual([1]);
    await work.stop();
  });

  test('between an event and its sending leaves it to the next one, once (E20)', async () => {
    using queue = startQueue();
    queue.addWebhook('one');
    queue.upgrade('A', 7, START_MS - HOUR, false);
    queue.times.save(7n, 1_700_000_000);
    const work = startWorker(() => answered(200), { queue });
    await work.advance(HOUR);
    expect(work.posts()).toHaveLength(1);
    await work.stop();
  });
});

describe('a stop (E22)', () => {
  test('waits for the attempt under way, records it, and starts no other', async () => {
    await using work = await startSending();
    work.askToStop();
    work.upgrade('B', 8, work.clock.now());
    await work.advance(9 * SECOND);
    expect([work.isStopped(), work.network.open()]).toEqual([false, 1]);
    work.network.posts[0]?.end(answered(200));
    await work.advance(SOON);
    expect(work.isStopped()).toBe(true);
    expect(work.states()).toEqual(['delivered', 'queued']);
  });

  test('gives an attempt up after ten seconds; the next process makes it again', async () => {
    await using work = await startSending();
    work.askToStop();
    await work.advance(10 * SECOND - 1);
    expect(work.isStopped()).toBe(false);
    await work.advance(1);
    expect(work.isStopped()).toBe(true);
    expect(work.values('SELECT d.state, a.state FROM deliveries d JOIN attempts a')).toEqual([
      ['retry_scheduled', 'interrupted'],
    ]);
    expect(work.outbox.claim(work.clock.now(), [])).toHaveLength(1);
  });
});

describe('a full disk (E23)', () => {
  /** SQLite then says SQLITE_FULL as it does on a full disk. */
  function fill(work: ReturnType<typeof startWorker>) {
    const [[pages]] = work.values('PRAGMA page_count') as [[number]]; // what the pragma gives
    work.store.run(`PRAGMA max_page_count = ${pages}`);
  }
  const free = (work: ReturnType<typeof startWorker>) => work.store.run('PRAGMA max_page_count = 1000000');

  test('at the claim lets nothing be sent, and is told', async () => {
    await using work = startWorker(() => answered(200));
    for (let i = 0; i < 64; i++)
      work.addWebhook(`webhook ${i}`, { host: `${'long.'.repeat(40)}${i}.example.com` });
    work.upgrade('A', 7);
    fill(work);
    await work.advance(5 * SECOND);
    expect(work.posts()).toEqual([]);
    expect(work.worker.state().trouble).toMatchObject({ code: 'SQLITE_FULL' });
    expect(work.troubles.length).toBeLessThanOrEqual(6);
    free(work);
    await work.advance(2 * SECOND);
    expect(work.posts()).toHaveLength(64);
    expect(work.worker.state().trouble).toBeUndefined();
  });

  test('at the record keeps the result, claims nothing, and sends nothing twice', async () => {
    await using work = await startSending();
    fill(work);
    work.network.posts[0]?.end(answered(200, 'x'.repeat(16_384)));
    await work.advance(SOON);
    expect(work.worker.state()).toMatchObject({ underWay: 1, trouble: { code: 'SQLITE_FULL' } });
    free(work);
    work.upgrade('B', 8, work.clock.now());
    fill(work);
    await work.advance(5 * MINUTE);
    expect(work.posts()).toHaveLength(1);
    free(work);
    await work.advance(SECOND);
    expect(work.states()).toEqual(['delivered', 'attempting']);
    expect(work.posts()).toHaveLength(2);
    expect(work.values('SELECT length(answer_body) FROM attempts WHERE status = 200')).toEqual([[16_384]]);
  });
});

describe('a wall clock that is moved (E26)', () => {
  test.each([HOUR, -HOUR])(
    'by %i ms starts no burst, is told, and delays nothing by more than two hours',
    async (byMs) => {
      await using work = startWorker(() => answered(500));
      for (let i = 0; i < 100; i++) work.addWebhook(`webhook ${i}`, { host: `${i % 4}.example.com` });
      work.upgradeNow('A', 7);
      await work.advance(10 * SECOND);
      work.moveWallClock(byMs);
      await work.advance(6 * SECOND);
      expect(work.moved).toEqual([byMs]);
      expect(work.network.openMost()).toBeLessThanOrEqual(32);
      const dueAtMs = Number(work.values('SELECT max(next_attempt_at_ms) FROM deliveries')[0]?.[0]);
      expect(dueAtMs - work.clock.now()).toBeLessThanOrEqual(2 * HOUR);
      await work.advance(5 * HOUR);
      expect(new Set(work.states())).toEqual(new Set(['failed']));
      const last = work.network.posts.at(-1);
      const signedAt = Number(last?.post.headers['X-Service-Timestamp']);
      expect(signedAt * 1_000).toBeGreaterThan(START_MS + byMs);
    },
  );

  test('back by an hour takes what is due with it: each retry comes when it would have', async () => {
    await using work = await startSending(() => answered(500));
    for (const [i, gapMs] of [30 * SECOND, 2 * MINUTE, 10 * MINUTE].entries()) {
      work.moveWallClock(-HOUR);
      await work.advance(gapMs - 2 * SECOND);
      expect(work.posts()).toHaveLength(i + 1);
      await work.advance(2 * SECOND);
      expect(work.posts()).toHaveLength(i + 2);
    }
    expect(work.moved).toEqual([-HOUR, -HOUR, -HOUR]);
  });

  test('while an attempt is under way takes no lease from it', async () => {
    await using work = await startSending();
    work.moveWallClock(HOUR);
    await work.advance(8 * SECOND);
    work.network.posts[0]?.end(answered(200));
    await work.advance(SOON);
    expect([work.posts().length, work.states()]).toEqual([1, ['delivered']]);
  });
});

describe('isolation', () => {
  test('M18 an account whose hundred receivers hang, resent for ever, keeps no other waiting (E35)', async () => {
    await using work = startWorker(({ post }) =>
      post.url.hostname.startsWith('hung') ? undefined : answered(200),
    );
    for (let i = 0; i < 100; i++) work.addWebhook(`hung ${i}`);
    work.trust();
    for (let slot = 1; slot <= 10; slot++) work.upgradeNow('A', slot);
    await work.advance(SECOND);
    expect(work.network.open()).toBe(100 + 256);
    for (let i = 0; i < 50; i++) work.addWebhook(`other ${i}`, { account: 2 });
    work.upgradeNow('B', 20);
    await work.advance(SECOND);
    const delivered =
      "SELECT count(*) FROM deliveries WHERE webhook_id LIKE 'other%' AND state = 'delivered'";
    expect(work.values(delivered)).toEqual([[50]]);
    for (const post of work.network.posts) if (post.isOpen()) post.end(failedWith('timeout'));
    await work.advance(SECOND);
    expect(work.network.open()).toBe(32);
    work.upgradeNow('C', 30);
    await work.advance(SECOND);
    expect(work.values(delivered)).toEqual([[100]]);
  });
});

test('an attempt whose lease another took is not recorded, and that is told (E25)', async () => {
  await using work = await startSending();
  work.outbox.reap(work.clock.now() + 30 * SECOND, new Set()); // another process, with its lock bypassed
  const [other] = work.outbox.claim(work.clock.now() + 30 * SECOND, []);
  work.network.posts[0]?.end(answered(500));
  await work.advance(SOON);
  expect(work.ended.map(([, recorded]) => recorded)).toEqual(['stale']);
  expect(work.end(other, answered(200), work.clock.now())).toBe('recorded');
  expect(work.states()).toEqual(['delivered']);
});
