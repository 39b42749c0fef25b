import { describe, expect, test } from 'bun:test';
import { listen, type Listening } from '../../deploys/server.ts';

const ANY = { hostname: '127.0.0.1', port: 0 };
const text = (body: string) => () => new Response(body);
function listening(outcome: Listening): Extract<Listening, { kind: 'listening' }> {
  if (outcome.kind === 'refused') throw new Error(outcome.sentence);
  return outcome;
}

test('the API and the metrics have a listener each', async () => {
  const { url, metricsUrl, close } = listening(
    listen({ listen: ANY, metrics: ANY }, text('api'), text('metrics')),
  );
  expect(url.port).not.toBe(metricsUrl.port);
  expect([await (await fetch(url)).text(), await (await fetch(metricsUrl)).text()]).toEqual([
    'api',
    'metrics',
  ]);
  await close(1_000);
});

test('an answer is given the address of the connection’s other end', async () => {
  const seen: (string | undefined)[] = [];
  const answer = (_: Request, address?: string) => {
    seen.push(address);
    return new Response();
  };
  const { url, close } = listening(listen({ listen: ANY, metrics: ANY }, answer, text('m')));
  await fetch(url, { headers: { 'x-forwarded-for': '6.6.6.6' } });
  expect(seen).toEqual(['127.0.0.1']);
  await close(1_000);
});

/** What is answered to a request that no client of ours would send. */
async function asked(port: string, lines: string): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  let text = '';
  await Bun.connect({
    hostname: '127.0.0.1',
    port: Number(port),
    socket: {
      open: (socket) => void socket.write(`${lines}\r\nConnection: close\r\n\r\n`),
      data: (_, bytes) => void (text += bytes),
      close: () => resolve(text),
    },
  });
  return promise;
}

describe('a request', () => {
  const path = (request: Request) => new Response(new URL(request.url).pathname);

  test.each(['[', 'a b', 'x:99999', 'example.com/@', '%00'])('to the host %p is a 400', async (host) => {
    const { url, close } = listening(listen({ listen: ANY, metrics: ANY }, path, text('m')));
    expect(await asked(url.port, `GET /a HTTP/1.1\r\nHost: ${host}`)).toStartWith('HTTP/1.1 400 ');
    await close(1_000);
  });

  test.each(['GET /a HTTP/1.1\r\nHost:', 'GET /a HTTP/1.0\r\nAccept: */*'])(
    'that names no host is answered by its path: %j',
    async (lines) => {
      const { url, close } = listening(listen({ listen: ANY, metrics: ANY }, path, text('m')));
      expect(await asked(url.port, lines)).toEndWith('/a');
      await close(1_000);
    },
  );
});

test.each(['listen', 'metrics'] as const)(
  'a taken port is one sentence with the key deploys.%s',
  async (name) => {
    // The other process would share its port: what refuses it must be ours.
    using taken = Bun.serve({ hostname: '127.0.0.1', port: 0, reusePort: true, fetch: text('other') });
    const port = taken.port ?? 0;
    const outcome = listen(
      { listen: ANY, metrics: ANY, [name]: { hostname: '127.0.0.1', port } },
      text('api'),
      text('m'),
    );
    expect(outcome).toEqual({
      kind: 'refused',
      sentence: `The address 127.0.0.1:${port} cannot be listened on (another process has it); free it or change deploys.${name} in the config.`,
    });
  },
);

test('a start that is refused leaves no listener behind', async () => {
  using taken = Bun.serve({ hostname: '127.0.0.1', port: 0, reusePort: false, fetch: text('other') });
  const free = Bun.serve({ hostname: '127.0.0.1', port: 0, reusePort: false, fetch: text('free') });
  const api = { hostname: '127.0.0.1', port: free.port ?? 0 };
  await free.stop(true);
  const metrics = { hostname: '127.0.0.1', port: taken.port ?? 0 };
  expect(listen({ listen: api, metrics }, text('api'), text('m')).kind).toBe('refused');
  await listening(listen({ listen: api, metrics: ANY }, text('api'), text('m'))).close(1_000);
});

test('an answer under way is finished after a stop was asked for, and new connections are refused', async () => {
  const asked = Promise.withResolvers<void>();
  const wanted = Promise.withResolvers<Response>();
  const slow = () => (asked.resolve(), wanted.promise);
  const { url, close } = listening(listen({ listen: ANY, metrics: ANY }, slow, text('m')));
  const answered = fetch(url);
  await asked.promise;
  const closed = close(10_000);
  await expect(fetch(url, { keepalive: false })).rejects.toThrow();
  wanted.resolve(new Response('finished'));
  expect(await (await answered).text()).toBe('finished');
  await closed;
});

test('an answer that never comes is cut when the time to drain is over', async () => {
  const asked = Promise.withResolvers<void>();
  const never = () => (asked.resolve(), new Promise<Response>(() => {}));
  const { url, close } = listening(listen({ listen: ANY, metrics: ANY }, never, text('m')));
  const answered = fetch(url).catch((error: Error) => error);
  await asked.promise;
  await close(50);
  expect(await answered).toBeInstanceOf(Error);
});

test('what is thrown on the way is 500 without its message', async () => {
  const broken = () => {
    throw new Error('secret');
  };
  const { url, close } = listening(listen({ listen: ANY, metrics: ANY }, broken, text('m')));
  const response = await fetch(url);
  expect([response.status, await response.text()]).toEqual([500, '{"error":"Internal error"}']);
  await close(1_000);
});

test('a request line above 16 KiB is refused before the app sees it, which bounds the list of programs', async () => {
  const seen: string[] = [];
  const { url, close } = listening(
    listen({ listen: ANY, metrics: ANY }, ({ url: asked }) => (seen.push(asked), new Response()), text('m')),
  );
  const response = await fetch(new URL(`?program_id=${'x'.repeat(20_000)}`, url));
  expect([response.status >= 400, seen]).toEqual([true, []]);
  await close(1_000);
});
