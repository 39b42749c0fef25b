import { describe, expect, test } from 'bun:test';
import { type Takeover, TAKEOVERS } from '../../../deploys/webhooks/change.ts';
import { createSecretsOf } from '../../../deploys/webhooks/seal.ts';
import { Secret } from '../../../shared/secret.ts';
import { START_MS } from '../../fakes/chain-clock.ts';
import { answered, failedWith } from '../../fakes/scripted-send.ts';
import { isSigned } from '../delivery/is-signed.ts';
import { HOUR, MINUTE, SECOND, SOON, startWorker, type TimedPost } from '../delivery/working.ts';
import { byMe, HOUR_MS, ME, startWebhooks, testSeal } from './started.ts';

async function started() {
  const webhooks = startWebhooks();
  const { id, secret: old } = await webhooks.made();
  const rotate = (takeover: Takeover) => {
    const rotated = webhooks.rotate(byMe, id, takeover);
    return rotated.kind === 'rotated' ? rotated.secret.reveal() : rotated.kind;
  };
  return { ...webhooks, id, old, rotate, rotateSeen: webhooks.rotate };
}

describe('a rotated secret', () => {
  test.each(['now', '1h', '24h'] as const)(
    'signs beside the old one for %s and then takes over',
    async (takeover) => {
      using webhooks = await started();
      const { id, old, clock } = webhooks;
      const next = webhooks.rotate(takeover);
      const atMs = START_MS + TAKEOVERS[takeover];
      if (takeover !== 'now') {
        expect(webhooks.find(ME, id)?.nextSecretAtMs).toBe(atMs);
        await clock.advance(TAKEOVERS[takeover] - 1);
        expect(webhooks.signedWith(id)).toEqual([old, next]);
        await clock.advance(1);
      }
      expect(webhooks.signedWith(id)).toEqual([next, undefined]);
      expect(webhooks.find(ME, id)?.nextSecretAtMs).toBeNull();
    },
  );

  test.each(['switchNow', 'cancelRotation'] as const)(
    'is the only pending one, and can be settled before its time by %s',
    async (settle) => {
      using webhooks = await started();
      const next = webhooks.rotate('24h');
      expect(webhooks.rotate('now')).toBe('rotation-pending');
      expect(webhooks.signedWith(webhooks.id)).toEqual([webhooks.old, next]);
      expect(webhooks[settle](byMe, webhooks.id)).toMatchObject({
        kind: 'settled',
        webhook: { nextSecretAtMs: null },
      });
      const signing = settle === 'switchNow' ? next : webhooks.old;
      expect(webhooks.signedWith(webhooks.id)).toEqual([signing, undefined]);
      expect(webhooks[settle](byMe, webhooks.id)).toEqual({ kind: 'no-rotation' });
    },
  );

  test('that took over by itself stays when the next rotation is cancelled', async () => {
    using webhooks = await started();
    const second = webhooks.rotate('1h');
    await webhooks.clock.advance(HOUR_MS);
    expect(webhooks.cancelRotation(byMe, webhooks.id)).toEqual({ kind: 'no-rotation' });
    const third = webhooks.rotate('1h');
    expect(webhooks.signedWith(webhooks.id)).toEqual([second, third]);
    webhooks.cancelRotation(byMe, webhooks.id);
    expect(webhooks.signedWith(webhooks.id)).toEqual([second, undefined]);
  });

  test('is not begun again by a form that is sent twice', async () => {
    using webhooks = await started();
    const seenAtMs = webhooks.find(ME, webhooks.id)?.updatedAtMs ?? 0;
    await webhooks.clock.advance(1);
    const first = webhooks.rotateSeen(byMe, webhooks.id, 'now', seenAtMs);
    const signed = webhooks.signedWith(webhooks.id);
    expect(first).toMatchObject({ kind: 'rotated' });
    expect(signed).toEqual([first.kind === 'rotated' ? first.secret.reveal() : '', undefined]);
    expect(webhooks.rotateSeen(byMe, webhooks.id, 'now', seenAtMs)).toEqual({
      kind: 'changed-meanwhile',
    });
    expect(webhooks.signedWith(webhooks.id)).toEqual(signed);
  });
});

/** The same with the worker that sends for them, over one queue; all attempts end as `sent`. */
async function sending(sent = answered(500)) {
  const webhooks = await started();
  const secretsOf = createSecretsOf(webhooks.queue.store, testSeal);
  const work = startWorker(() => sent, { queue: webhooks.queue, secretsOf });
  /** The service and the worker have a clock each, which go together. */
  async function advance(ms: number) {
    await webhooks.clock.advance(ms);
    await work.advance(ms);
  }
  return { ...webhooks, work, advance };
}

/** Under which of `secrets` each of the two signatures of a post is, by their places; -1 for none. */
function signedBy(post: TimedPost | undefined, secrets: readonly string[]): [number, number] {
  const field = (name: string) => String(post?.post.headers[name] ?? '');
  const timestamp = field('X-Service-Timestamp');
  const body = post?.post.body ?? new Uint8Array();
  const place = (header: string) =>
    secrets.findIndex((secret) =>
      isSigned(new Secret(secret), { timestamp, signature: field(header) }, body, Number(timestamp)),
    );
  return [place('X-Service-Signature'), place('X-Service-Signature-Next')];
}

test('a rotation that is pending, cancelled and due signs each attempt of one delivery as the page says (E30)', async () => {
  using webhooks = await sending();
  const { work, rotate, advance, id } = webhooks;
  work.upgradeNow('A', 7);
  await advance(SOON);
  const given = rotate('24h');
  await advance(30 * SECOND);
  webhooks.cancelRotation(byMe, id);
  await advance(2 * MINUTE);
  const second = rotate('1h');
  await advance(10 * MINUTE);
  await advance(30 * MINUTE);
  // It takes over before the last attempt, which comes two hours after the fifth.
  await advance(2 * HOUR);
  const secrets = [webhooks.old, given, second];
  expect(work.posts().map((post) => signedBy(post, secrets))).toEqual([
    [0, -1],
    [0, 1],
    [0, -1],
    [0, 2],
    [0, 2],
    [2, -1],
  ]);
  await work.stop();
});

test('a test of a host that is not public is recorded with a clear reason, and tried again (E34)', async () => {
  using webhooks = await sending(failedWith('blocked_address'));
  const { work, advance, id } = webhooks;
  const tested = webhooks.sendTest(byMe, id);
  work.worker.wake();
  await advance(SOON);
  const delivery = webhooks.delivery(byMe.accountId, id, 'deliveryId' in tested ? tested.deliveryId : '');
  expect(delivery).toMatchObject({ state: 'retry_scheduled', lastError: 'blocked_address', attempts: 1 });
  expect(delivery?.tries).toMatchObject([{ state: 'blocked', error: 'blocked_address' }]);
  await work.stop();
});
