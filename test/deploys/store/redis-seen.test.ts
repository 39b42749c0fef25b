import { expect, test } from 'bun:test';
import { createReadRedis } from '../../../deploys/health/neighbours.ts';
import { systemClock } from '../../../shared/clock.ts';
import { Secret } from '../../../shared/secret.ts';
import { startRedis } from '../../started/redis.ts';

const LONG_MS = 30_000;
/** Nothing listens here: ports below 1024 need rights that nobody takes for a test. */
const NOBODY = '127.0.0.1:1';

test(
  'every node of the config is asked, and one that is away is said to be',
  async () => {
    await using redis = await startRedis();
    const seen = await createReadRedis(new Secret(`${redis.url},${NOBODY}`), systemClock)();
    expect(seen).toEqual([
      { kind: 'answers', host: `127.0.0.1:${redis.port}`, tookMs: expect.any(Number) as number },
      { kind: 'cannot-be-reached', host: NOBODY, reason: 'ECONNREFUSED' },
    ]);
  },
  LONG_MS,
);

test(
  'a password is used and never told, and one that is wrong is named by the word that Redis has for it',
  async () => {
    await using redis = await startRedis(['--requirepass', 'right']);
    const seenBy = (password: string) =>
      createReadRedis(new Secret(redis.url.replace('//', `//:${password}@`)), systemClock)();
    expect(await seenBy('right')).toMatchObject([{ kind: 'answers' }]);
    const wrong = await seenBy('wrong-one');
    expect(wrong).toMatchObject([{ kind: 'cannot-be-reached', reason: 'WRONGPASS' }]);
    expect(JSON.stringify(wrong)).not.toContain('wrong-one');
  },
  LONG_MS,
);

test('who asks again at once is told the same', () => {
  const read = createReadRedis(new Secret(`redis://${NOBODY}`), { ...systemClock, monotonic: () => 5 });
  expect(read()).toBe(read());
});
