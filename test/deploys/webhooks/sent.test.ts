import { expect, test } from 'bun:test';
import type { Takeover } from '../../../deploys/webhooks/change.ts';
import { createSecretsOf } from '../../../deploys/webhooks/seal.ts';
import { answered, failedWith } from '../../fakes/scripted-send.ts';
import { isSigned } from '../delivery/is-signed.ts';
import { HOUR, MINUTE, SECOND, SOON, startWorker, type TimedPost } from '../delivery/working.ts';
import { Secret } from '../../../shared/secret.ts';
import { byMe, startWebhooks, testSeal } from './started.ts';

/** Webhooks with the worker that sends for them, over one queue; all attempts end as `sent`. */
async function started(sent = answered(500)) {
  const webhooks = startWebhooks();
  const { id, secret } = await webhooks.made();
  const work = startWorker(() => sent, {
    queue: webhooks.queue,
    secretsOf: createSecretsOf(webhooks.queue.store, testSeal),
  });
  /** The service and the worker have a clock each, which go together. */
  async function advance(ms: number) {
    await webhooks.clock.advance(ms);
    await work.advance(ms);
  }
  const rotate = (takeover: Takeover) => {
    const rotated = webhooks.rotate(byMe, id, takeover);
    return rotated.kind === 'rotated' ? rotated.secret.reveal() : rotated.kind;
  };
  return { ...webhooks, work, id, secret, advance, rotate };
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
  using webhooks = await started();
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
  const secrets = [webhooks.secret, given, second];
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
  using webhooks = await started(failedWith('blocked_address'));
  const { work, advance, id } = webhooks;
  const tested = webhooks.sendTest(byMe, id);
  work.worker.wake();
  await advance(SOON);
  const delivery = webhooks.delivery(byMe.accountId, id, 'deliveryId' in tested ? tested.deliveryId : '');
  expect(delivery).toMatchObject({ state: 'retry_scheduled', lastError: 'blocked_address', attempts: 1 });
  expect(delivery?.tries).toMatchObject([{ state: 'blocked', error: 'blocked_address' }]);
  await work.stop();
});
