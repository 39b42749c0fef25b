import { describe, expect, test } from 'bun:test';
import { clusterOptions, connectionOptions, endpointsFrom } from '../../../shared/redis/options.ts';

describe('an address', () => {
  test.each([
    ['redis://h', [{ host: 'h', port: 6_379 }], {}],
    ['redis://h:7/', [{ host: 'h', port: 7 }], {}],
    ['redis://h:7/3', [{ host: 'h', port: 7 }], { db: 3 }],
    ['redis://:p%40ss@h', [{ host: 'h', port: 6_379 }], { password: 'p@ss' }],
    ['rediss://me:secret@h', [{ host: 'h', port: 6_379 }], { username: 'me', password: 'secret', tls: {} }],
    ['redis://[::1]:7', [{ host: '::1', port: 7 }], {}],
    [
      'redis://a:1,c',
      [
        { host: 'a', port: 1 },
        { host: 'c', port: 6_379 },
      ],
      {},
    ],
  ])('%s is read', (url, nodes, options) => {
    // `test.each` widens the rows of its table to any of their shapes.
    expect(endpointsFrom(url)).toEqual({ nodes, options } as unknown as NonNullable<
      ReturnType<typeof endpointsFrom>
    >);
  });
});

describe('a connection', () => {
  const options = connectionOptions(100, () => 1);
  test('queues nothing, sends nothing twice and makes no caller wait', () => {
    expect(options).toMatchObject({
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      autoResendUnfulfilledCommands: false,
      commandTimeout: 100,
    });
    const cluster = clusterOptions(100, () => 1, { password: 'secret', db: 3 });
    expect(cluster).toMatchObject({
      enableOfflineQueue: false,
      retryDelayOnFailover: 0,
      retryDelayOnClusterDown: 0,
    });
    expect(cluster.redisOptions).toMatchObject({ maxRetriesPerRequest: 0, password: 'secret' });
    expect(cluster.redisOptions).not.toHaveProperty('enableOfflineQueue');
    expect(cluster.redisOptions).not.toHaveProperty('db');
  });
  test('is tried again for ever, at least twice a second, and not in step with others', () => {
    const late = connectionOptions(100, () => 0);
    for (const attempt of [1, 2, 10, 1_000, 1e9]) {
      expect(late.retryStrategy(attempt)).toBeLessThanOrEqual(500);
      expect(options.retryStrategy(attempt)).toBe(Math.round(late.retryStrategy(attempt) / 2));
    }
  });
});
