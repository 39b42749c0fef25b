import { afterEach, describe, expect, test } from 'bun:test';
import { createReadGateways, createReadRedis } from '../../../deploys/health/neighbours.ts';
import { within } from '../../../deploys/health/outbound.ts';
import { systemClock } from '../../../shared/clock.ts';
import { Secret } from '../../../shared/secret.ts';
import { createVirtualClock } from '../../fakes/chain-clock.ts';
import { startRedis } from '../../started/redis.ts';

const STATUS = { version: '1', processes: 2, recent_seconds: 300, backends: [] };
const servers: Bun.Server<undefined>[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) void server.stop(true);
});

/** A gateway's metrics listener that answers like this. */
function serve(answer: (request: Request) => Response | Promise<Response>): URL {
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: answer });
  servers.push(server);
  return new URL(`http://127.0.0.1:${server.port}`);
}
const read = (...urls: URL[]) => createReadGateways({ urls, fetch, clock: systemClock })();

test('every gateway’s status is read, in order', async () => {
  const paths: string[] = [];
  const one = serve((request) => (paths.push(new URL(request.url).pathname), Response.json(STATUS)));
  const other = serve(() => new Response(null, { status: 500 }));
  expect(await read(one, other)).toEqual([
    { kind: 'seen', host: one.host, status: STATUS },
    { kind: 'cannot-be-reached', host: other.host, reason: 'HTTP 500' },
  ]);
  expect(paths).toEqual(['/status.json']);
});

describe('an invalid status is a reason, never an error', () => {
  test.each([
    ['other JSON', () => Response.json({ version: 1 }), 'not a gateway status of this version'],
    ['no JSON', () => new Response('<html>'), 'not a gateway status of this version'],
    [
      'more than there is to tell',
      () => new Response(JSON.stringify(STATUS) + ' '.repeat(300_000)),
      'not a gateway status of this version',
    ],
    ['an older version', () => new Response('Not found.', { status: 404 }), 'HTTP 404'],
  ] as const)('%s', async (_name, answer, reason) => {
    const url = serve(answer);
    expect(await read(url)).toEqual([{ kind: 'cannot-be-reached', host: url.host, reason }]);
  });
  test('a gateway that is not there, and one that sends elsewhere, which is not followed', async () => {
    const elsewhere = serve(() => Response.json(STATUS));
    const sending = serve(() => Response.redirect(elsewhere.href));
    const gone = serve(() => Response.json(STATUS));
    await servers.pop()?.stop(true);
    expect(await read(sending, gone)).toMatchObject([
      { kind: 'cannot-be-reached' },
      { kind: 'cannot-be-reached', reason: 'ECONNREFUSED' },
    ]);
  });
});

test('a gateway that does not answer costs a second and a half, and delays no other', async () => {
  const clock = createVirtualClock();
  const urls = [new URL('http://silent.example'), new URL('http://well.example')];
  const signals: AbortSignal[] = [];
  const seen = createReadGateways({
    urls,
    clock,
    fetch: (url, { signal }) => {
      signals.push(signal);
      return url.host === 'well.example'
        ? Promise.resolve(Response.json(STATUS))
        : new Promise(() => undefined);
    },
  })();
  await clock.advance(1_500);
  expect((await seen).map(({ kind }) => kind)).toEqual(['cannot-be-reached', 'seen']);
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
  expect(clock.sleepers()).toBe(0);
});

test('a gateway is read once a second at most', async () => {
  const clock = createVirtualClock();
  let asked = 0;
  const readGateways = createReadGateways({
    urls: [new URL('http://a.example')],
    clock,
    fetch: () => (asked++, Promise.resolve(Response.json(STATUS))),
  });
  await Promise.all([readGateways(), readGateways()]);
  await clock.advance(999);
  await readGateways();
  expect(asked).toBe(1);
  await clock.advance(1);
  await readGateways();
  expect(asked).toBe(2);
});

test('a password is used and never shown, and a wrong one is reported by the error of Redis', async () => {
  await using redis = await startRedis(['--requirepass', 'right']);
  const seenBy = (password: string) =>
    createReadRedis(new Secret(redis.url.replace('//', `//:${password}@`)), systemClock)();
  expect(await seenBy('right')).toMatchObject([{ kind: 'answers' }]);
  const wrong = await seenBy('wrong-one');
  expect(wrong).toMatchObject([{ kind: 'cannot-be-reached', reason: 'WRONGPASS' }]);
  expect(JSON.stringify(wrong)).not.toContain('wrong-one');
}, 30_000);

test('what is thrown in time is thrown, and what is thrown late is nobody’s', async () => {
  const clock = createVirtualClock();
  const { signal } = new AbortController();
  await expect(within(clock, 100, signal, () => Promise.reject(new Error('mine')))).rejects.toThrow('mine');
  const late = within(clock, 100, signal, async () => {
    await clock.sleep(200, signal);
    throw new Error('late');
  });
  await clock.advance(300);
  expect(await late).toEqual({ kind: 'timed-out' });
});
