import { describe, expect, test } from 'bun:test';
import type { Outbox } from '../../../deploys/outbox/outbox.ts';
import type { Sent } from '../../../deploys/outbox/outcome.ts';
import { Secret } from '../../../shared/secret.ts';
import { START_MS } from '../../fakes/chain-clock.ts';
import { answered, failedWith } from '../../fakes/scripted-send.ts';
import { queueWith, startQueue } from '../outbox/queue.ts';
import { isSigned } from './is-signed.ts';
import { HOUR, MINUTE, SECOND, SECRET, SOON, startSending, startWorker, type TimedPost } from './working.ts';

const gapsOf = (posts: readonly TimedPost[]) =>
  posts.slice(1).map(({ atMs }, i) => atMs - (posts[i]?.atMs ?? 0));
const distinct = (values: readonly unknown[]) => new Set(values).size;
const headerOf = ({ post }: TimedPost, name: string) => String(post.headers[name]);

test('a delivery that always fails is attempted six times: at once and 30 s, 2 min, 10 min, 30 min, 2 h after each failure, each signed anew (E18, §4.2, §4.3, §6 webhook attempts)', async () => {
  await using work = startWorker(() => failedWith('connection_reset'));
  work.addWebhook('one');
  await work.advance(SOON);
  work.upgradeNow('A', 7);
  await work.advance(4 * HOUR);
  const posts = work.posts();
  expect(posts[0]?.atMs).toBeLessThanOrEqual(START_MS + SOON);
  expect(gapsOf(posts)).toEqual([30 * SECOND, 2 * MINUTE, 10 * MINUTE, 30 * MINUTE, 2 * HOUR]);
  expect(work.rows('SELECT state, attempts, last_error FROM deliveries')).toEqual([
    { state: 'failed', attempts: 6, last_error: 'connection_reset' },
  ]);
  expect(work.values('SELECT number FROM attempts ORDER BY n').flat()).toEqual([1, 2, 3, 4, 5, 6]);
  expect([distinct(posts.map(({ id }) => id)), distinct(posts.map(({ text }) => text))]).toEqual([1, 1]);
  expect(JSON.parse(posts[0]?.text ?? '')).toMatchObject({ id: posts[0]?.id, event: 'program.upgraded' });
  expect(distinct(posts.map((post) => headerOf(post, 'X-Service-Signature')))).toBe(6);
  for (const post of posts) {
    expect(headerOf(post, 'X-Service-Event')).toBe('program.upgraded');
    const timestamp = headerOf(post, 'X-Service-Timestamp');
    expect(timestamp).toBe(String(Math.floor(post.atMs / 1_000)));
    const signed = { timestamp, signature: headerOf(post, 'X-Service-Signature') };
    expect(isSigned(new Secret(SECRET), signed, post.post.body, Number(timestamp))).toBe(true);
  }
});

test('a delay counts from the end of the failed attempt, not from its start (E18)', async () => {
  await using work = await startSending();
  await work.advance(10 * SECOND);
  const endedAtMs = work.clock.now();
  work.network.posts[0]?.end(failedWith('timeout'));
  await work.advance(MINUTE);
  expect(work.posts()[1]?.atMs).toBe(endedAtMs + 30 * SECOND);
});

test('2xx delivers, and anything else is tried again after 30 s (E7, E3, E4)', async () => {
  const sent: Record<string, [end: Sent, error: string | null, state?: string]> = {
    'incomplete.example.com': [answered(200, 'half', 'incomplete'), null, 'succeeded'],
    'timeout.example.com': [failedWith('timeout'), 'timeout'],
    'dns.example.com': [failedWith('dns_error'), 'dns_error'],
    'tls.example.com': [failedWith('tls_error'), 'tls_error'],
    'blocked.example.com': [failedWith('blocked_address'), 'blocked_address', 'blocked'],
  };
  for (const status of [200, 204, 299]) sent[`${status}.example.com`] = [answered(status), null, 'succeeded'];
  for (const status of [199, 300, 301, 304, 307, 400, 404, 410, 429, 500, 503])
    sent[`${status}.example.com`] = [answered(status), `http_${status}`];
  await using work = startWorker(({ post }) => sent[post.url.hostname]?.[0]);
  for (const host of Object.keys(sent)) work.addWebhook(host, { host });
  work.upgradeNow('A', 7);
  await work.advance(30 * SECOND + 3 * SOON);
  for (const [host, [end, error, state = 'failed']] of Object.entries(sent)) {
    const posts = work.posts().filter(({ post }) => post.url.hostname === host);
    expect([host, gapsOf(posts)]).toEqual([host, error === null ? [] : [30 * SECOND]]);
    const of = `WHERE webhook_id = '${host}'`;
    expect(work.values(`SELECT state, last_status, last_error FROM deliveries ${of}`)).toEqual([
      [error === null ? 'delivered' : 'retry_scheduled', end.kind === 'answered' ? end.status : null, error],
    ]);
    expect(
      new Set(work.values(`SELECT a.state FROM attempts a JOIN deliveries ON id = delivery_id ${of}`).flat()),
    ).toEqual(new Set([state]));
  }
  expect(work.values("SELECT count(*) FROM attempts WHERE answer_body_kind = 'incomplete'")).toEqual([[1]]);
});

describe('the worker', () => {
  test('sends new deliveries within a second when it is not woken', async () => {
    await using work = startWorker(() => answered(200));
    work.addWebhook('one');
    await work.advance(10 * MINUTE + 1);
    work.upgrade('A', 7, work.clock.now());
    await work.advance(SECOND);
    expect(work.posts()).toHaveLength(1);
  });

  test('fails an attempt whose secret cannot be unsealed, without sending, and reports it', async () => {
    await using work = startWorker(() => answered(200), {
      secretsOf: () => {
        throw new Error('cannot be unsealed');
      },
    });
    work.addWebhook('one');
    work.upgradeNow('A', 7);
    await work.advance(4 * HOUR);
    expect(work.posts()).toEqual([]);
    expect(work.values('SELECT state, last_error FROM deliveries')).toEqual([['failed', 'internal_error']]);
    expect(work.broken).toHaveLength(6);
  });

  test('stores the headers it sent, and no secret', async () => {
    await using work = await startSending(() => answered(200));
    const [[headers]] = work.values('SELECT request_headers_json FROM attempts') as [[string]]; // one TEXT column
    expect(JSON.parse(headers)).toEqual(work.posts()[0]?.post.headers ?? {});
    expect(JSON.stringify(work.rows('SELECT * FROM attempts'))).not.toContain(SECRET);
  });
});

const idsOf = (posts: readonly { id: string }[]) => posts.map(({ id }) => id);

test('a process that dies after a POST and before its record sends once more under the same id, after the lease (E19)', async () => {
  using queue = queueWith('one');
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

  test('at the claim sends nothing, and is reported', async () => {
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

  test('back by an hour moves due times with it: each retry comes when it would have', async () => {
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

  test('back by any part of a second stops nothing, nor do ten changes in a minute', async () => {
    await using work = await startSending(() => answered(500));
    for (let i = 1; i <= 10; i++) {
      work.moveWallClock(i % 3 === 0 ? 7 * SECOND : -(5 * SECOND + i));
      await work.advance(2_900.5 + i / 8);
    }
    expect(work.troubles).toEqual([]);
    expect(work.posts()).toHaveLength(2);
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

test('80 deliveries resent by hand to a receiver that takes five seconds end one after the other, past the minute of its trust (E41)', async () => {
  await using work = startWorker();
  work.addWebhook('one');
  for (let slot = 1; slot <= 80; slot++) work.upgrade('A', slot);
  work.store.run(`UPDATE deliveries SET state = 'failed', attempts = 6, next_attempt_at_ms = NULL,
    finished_at_ms = ${START_MS}, resend_at_ms = ${START_MS}`);
  work.trust();
  let [ended, mostAtOnce] = [0, 0];
  // Four at once end by turns, so that some under way began in the minute when it is over.
  for (let step = 1; step <= 400 && ended < 80; step++) {
    await work.advance((5 / 4) * SECOND);
    const { posts } = work.network;
    mostAtOnce = Math.max(mostAtOnce, posts.length - ended);
    if ((work.posts()[ended]?.atMs ?? Infinity) <= work.clock.now() - 4 * SECOND)
      posts[ended++]?.end(answered(200));
  }
  await work.advance(SECOND);
  expect([mostAtOnce, work.posts().length, new Set(work.states())]).toEqual([4, 80, new Set(['delivered'])]);
  expect(work.troubles).toEqual([]);
});

describe('a turn that may not send (E42)', () => {
  test('claims nothing, and sends as soon as it may; nothing due asks for nothing', async () => {
    let [may, asked] = [false, 0];
    const permit = async () => (asked++, may);
    await using work = startWorker(() => answered(200), { permit });
    await work.advance(10 * SECOND);
    expect(asked).toBe(0);
    work.addWebhook('one');
    work.upgradeNow('A', 7);
    await work.advance(10 * SECOND);
    expect([work.posts().length, work.states()]).toEqual([0, ['queued']]);
    expect(asked).toBeWithin(5, 15);
    may = true;
    await work.advance(SECOND + SOON);
    expect([work.posts().length, work.states()]).toEqual([1, ['delivered']]);
    expect(work.troubles).toEqual([]);
  });

  test('claims nothing that comes due in the moment after nothing was', async () => {
    const queue = startQueue();
    queue.addWebhook('one');
    let looks = 0;
    const outbox = (real: Outbox): Outbox => ({
      ...real,
      isDue(nowMs) {
        const found = real.isDue(nowMs);
        if (looks++ === 0) queue.upgrade('A', 7); // as a command in another process does
        return found;
      },
    });
    await using work = startWorker(() => answered(200), { queue, outbox, permit: async () => false });
    await work.advance(10 * SECOND);
    expect([looks > 1, work.posts().length, work.states()]).toEqual([true, 0, ['queued']]);
  });

  test('a stop that comes while it asks is not followed by a claim', async () => {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    await using work = startWorker(() => answered(200), { permit: () => promise });
    work.addWebhook('one');
    work.upgradeNow('A', 7);
    await work.advance(SECOND);
    work.askToStop();
    resolve(true);
    await work.stop();
    expect([work.posts().length, work.states()]).toEqual([0, ['queued']]);
  });
});

test('an attempt whose lease another process took is not recorded, and that is reported (E25)', async () => {
  await using work = await startSending();
  work.outbox.reap(work.clock.now() + 30 * SECOND, new Set()); // another process, with its lock bypassed
  const [other] = work.outbox.claim(work.clock.now() + 30 * SECOND, []);
  work.network.posts[0]?.end(answered(500));
  await work.advance(SOON);
  expect(work.ended.map(([, recorded]) => recorded)).toEqual(['stale']);
  expect(work.end(other, answered(200), work.clock.now())).toBe('recorded');
  expect(work.states()).toEqual(['delivered']);
});
