import { expect, test } from 'bun:test';
import { listen } from '../../deploys/server.ts';

const ANY = { hostname: '127.0.0.1', port: 0 };
const text = (body: string) => () => new Response(body);
type Answer = Parameters<typeof listen>[1];
/** Listens on any two ports, unless told otherwise. */
function listening(answer: Answer = text('api'), listeners: object = {}) {
  const outcome = listen({ listen: ANY, metrics: ANY, ...listeners }, answer, text('metrics'));
  if (outcome.kind === 'refused') throw new Error(outcome.sentence);
  return { ...outcome, [Symbol.asyncDispose]: () => outcome.close(1_000) };
}

test('the API and the metrics have a listener each, and an answer is given the other end’s address', async () => {
  const seen: (string | undefined)[] = [];
  await using started = listening((_, address) => (seen.push(address), new Response('api')));
  const bodies = [started.url, started.metricsUrl].map(async (url) =>
    (await fetch(url, { headers: { 'x-forwarded-for': '6.6.6.6' } })).text(),
  );
  expect(await Promise.all(bodies)).toEqual(['api', 'metrics']);
  expect(seen).toEqual(['127.0.0.1']);
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

test.each([
  ...['[', 'a b', 'x:99999', 'example.com/@', '%00'].map((host) => [`GET /a HTTP/1.1\r\nHost: ${host}`, 400]),
  ['GET /a HTTP/1.1\r\nHost:', 200],
  ['GET /a HTTP/1.0\r\nAccept: */*', 200],
])(
  'a request whose host can be none is a 400, and one that names none is answered by its path: %j',
  async (lines, status) => {
    await using started = listening((request) => new Response(new URL(request.url).pathname));
    const answer = await asked(started.url.port, String(lines));
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.[01] ${status} `));
    expect(answer.endsWith('/a')).toBe(status === 200);
  },
);

test.each(['listen', 'metrics'] as const)(
  'a taken port is one sentence with the key deploys.%s',
  async (name) => {
    // The other process would share its port: what refuses it must be ours.
    using taken = Bun.serve({ hostname: '127.0.0.1', port: 0, reusePort: true, fetch: text('other') });
    const port = taken.port ?? 0;
    const listeners = { listen: ANY, metrics: ANY, [name]: { hostname: '127.0.0.1', port } };
    const outcome = listen(listeners, text('api'), text('m'));
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
  await using _ = listening(undefined, { listen: api });
});

test('an answer under way is finished after a stop was asked for, and new connections are refused', async () => {
  const begun = Promise.withResolvers<void>();
  const wanted = Promise.withResolvers<Response>();
  const { url, close } = listening(() => (begun.resolve(), wanted.promise));
  const answered = fetch(url);
  await begun.promise;
  const closed = close(10_000);
  await expect(fetch(url, { keepalive: false })).rejects.toThrow();
  wanted.resolve(new Response('finished'));
  expect(await (await answered).text()).toBe('finished');
  await closed;
});

test('an answer that never comes is cut when the time to drain is over', async () => {
  const begun = Promise.withResolvers<void>();
  const { url, close } = listening(() => (begun.resolve(), new Promise<Response>(() => {})));
  const answered = fetch(url).catch((error: Error) => error);
  await begun.promise;
  await close(50);
  expect(await answered).toBeInstanceOf(Error);
});

test('what is thrown on the way is 500 without its message', async () => {
  await using started = listening(() => {
    throw new Error('secret');
  });
  const response = await fetch(started.url);
  expect([response.status, await response.text()]).toEqual([500, '{"error":"Internal error"}']);
});

test('a request line above 16 KiB is refused before the app sees it, which bounds the list of programs', async () => {
  const seen: string[] = [];
  await using started = listening(({ url }) => (seen.push(url), new Response()));
  const response = await fetch(new URL(`?program_id=${'x'.repeat(20_000)}`, started.url));
  expect([response.status >= 400, seen]).toEqual([true, []]);
});
