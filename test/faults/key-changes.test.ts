import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { randomBytes } from 'node:crypto';
import { createKeys } from '../../deploys/accounts/keys.ts';
import { systemClock } from '../../shared/clock.ts';
import { startBackend } from '../fakes/backend.ts';
import { openCaller, postText } from '../fakes/raw-caller.ts';
import type { Store } from '../../shared/store/open.ts';
import { startGateway } from '../started/gateway.ts';
import { until } from '../started/stack.ts';
import { CALL, startAlone } from '../started/crew.ts';
import { countingLookUps } from './key-guesses.ts';

const BY = { kind: 'command-line' } as const;

let backend: ReturnType<typeof startBackend>;
beforeEach(() => void (backend = startBackend()));
afterEach(() => backend[Symbol.asyncDispose]());

/** An account with its first key, and what changes its keys. */
function firstKey(store: Store) {
  store.run("INSERT INTO accounts (name, plan, created_at_ms) VALUES ('payer', 'scale', 0)");
  const keys = createKeys({ store, clock: systemClock, random: randomBytes, note: () => undefined });
  const made = keys.create('payer', 'first', BY);
  if (made.kind !== 'created') throw new Error(made.kind);
  return { keys, made };
}

describe('E5 keys change while they are used', () => {
  test('E5 a revoked key stops within a second, and a rotated one works beside its heir until its time (§1.5)', async () => {
    await using gateway = await startAlone(backend.url);
    const { keys, made } = firstKey(gateway.accounts);
    expect(await gateway.statusOf(made.made.key)).toBe(200);
    const rotated = keys.rotate(made.made.id, 1_500, BY);
    if (rotated.kind !== 'rotated') throw new Error(rotated.kind);
    await Bun.sleep(1_000); // the promise is a second
    expect([await gateway.statusOf(made.made.key), await gateway.statusOf(rotated.made.key)]).toEqual([
      200, 200,
    ]);
    await Bun.sleep(Math.max(0, rotated.oldExpiresAtMs - Date.now()));
    expect([await gateway.statusOf(made.made.key), await gateway.statusOf(rotated.made.key)]).toEqual([
      401, 200,
    ]);
    keys.revoke(rotated.made.id, BY);
    await Bun.sleep(1_000);
    expect(await gateway.statusOf(rotated.made.key)).toBe(401);
  });

  test('E5 a key that is revoked, or whose account loses its plan, while a body comes does not pay for it', async () => {
    await using gateway = await startAlone(backend.url);
    const { keys, made } = firstKey(gateway.accounts);
    const revoke = () => keys.revoke(made.made.id, BY);
    const endPlan = () => gateway.accounts.run("UPDATE accounts SET plan = NULL WHERE name <> 'payer'");
    for (const [key, change] of [
      [made.made.key, revoke],
      [gateway.key(), endPlan],
    ] as const) {
      using caller = await openCaller(gateway.url);
      const text = postText(CALL, key, 'connection: close\r\n');
      caller.send(text.slice(0, -10));
      await caller.flushed();
      expect(await gateway.statusOf(key)).toBe(200); // the head above has been read before
      change();
      await until(async () => (await gateway.statusOf(key)) === 401 || undefined);
      caller.send(text.slice(-10));
      expect(await caller.until('"error"')).toStartWith('HTTP/1.1 401 ');
    }
  });

  test.each([
    ['has', 1_000, [200]],
    ['does not have', 80, [401]],
  ] as const)(
    'E5 of a key that the store %s, %i requests at once make one look-up',
    async (which, times, statuses) => {
      const { through, count } = countingLookUps();
      await using gateway = await startGateway(
        { backends: [{ name: 'a', url: backend.url }] },
        systemClock,
        through,
      );
      const key = gateway.key();
      if (which === 'does not have') gateway.accounts.run('DELETE FROM keys');
      const answers = await Promise.all(Array.from({ length: times }, () => gateway.post(CALL, key)));
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set(statuses));
      expect(count()).toBe(1);
    },
  );
});
