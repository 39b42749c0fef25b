import { describe, expect, test } from 'bun:test';
import type { Sent } from '../../../deploys/outbox/outcome.ts';
import { Secret } from '../../../shared/secret.ts';
import { START_MS } from '../../fakes/chain-clock.ts';
import { answered, failedWith } from '../../fakes/scripted-send.ts';
import { isSigned } from './is-signed.ts';
import { HOUR, MINUTE, SECOND, SECRET, SOON, startSending, startWorker, type TimedPost } from './working.ts';

const gapsOf = (posts: readonly TimedPost[]) =>
  posts.slice(1).map(({ atMs }, i) => atMs - (posts[i]?.atMs ?? 0));
const distinct = (values: readonly unknown[]) => new Set(values).size;
const headerOf = ({ post }: TimedPost, name: string) => String(post.headers[name]);

describe('a delivery that always fails (E18)', () => {
  test('is attempted six times: at once and 30 s, 2 min, 10 min, 30 min, 2 h after each failure, each signed anew', async () => {
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
  test('sends what is enqueued at once when it is told, and within a second when it is not', async () => {
    await using work = startWorker(() => answered(200));
    work.addWebhook('one');
    await work.advance(10 * MINUTE + 1);
    work.upgradeNow('A', 7);
    await work.advance(SOON);
    expect(work.posts()).toHaveLength(1);
    work.upgrade('B', 8, work.clock.now());
    await work.advance(SECOND);
    expect(work.posts()).toHaveLength(2);
  });

  test('fails an attempt whose secret cannot be had, without sending, and says so', async () => {
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
