import { describe, expect, test } from 'bun:test';
import { type Takeover, TAKEOVERS } from '../../../deploys/webhooks/change.ts';
import { START_MS } from '../../fakes/chain-clock.ts';
import { byMe, HOUR_MS, ME, startWebhooks } from './started.ts';

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
    'can be settled before its time by %s',
    async (settle) => {
      using webhooks = await started();
      const next = webhooks.rotate('24h');
      expect(webhooks[settle](byMe, webhooks.id)).toMatchObject({
        kind: 'settled',
        webhook: { nextSecretAtMs: null },
      });
      const signing = settle === 'switchNow' ? next : webhooks.old;
      expect(webhooks.signedWith(webhooks.id)).toEqual([signing, undefined]);
      expect(webhooks[settle](byMe, webhooks.id)).toEqual({ kind: 'no-rotation' });
    },
  );

  test('is the only one that waits', async () => {
    using webhooks = await started();
    const next = webhooks.rotate('24h');
    expect(webhooks.rotate('now')).toBe('rotation-pending');
    expect(webhooks.signedWith(webhooks.id)).toEqual([webhooks.old, next]);
  });

  test('that took over by itself is what the next rotation and its cancelling leave', async () => {
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
