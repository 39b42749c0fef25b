import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { temporaryFolder } from './gateway.ts';
import { freePort } from './ports.ts';
import { startRelay } from './relay.ts';

test('two relays carry requests through a socket in a folder, large bodies both ways, and end with their target', async () => {
  using folder = temporaryFolder();
  const path = join(folder.path, 'relay');
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    reusePort: false,
    fetch: async (request) => new Response(await request.bytes()),
  });
  const port = freePort();
  using _inner = await startRelay({ path }, { port: server.port ?? 0 });
  using _outer = await startRelay({ port }, { path });
  const body = crypto.getRandomValues(new Uint8Array(60_000));
  const large = Buffer.concat(Array.from({ length: 50 }, () => body));
  const answers = await Promise.all(
    Array.from({ length: 4 }, () => fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: large })),
  );
  for (const answer of answers) expect(large.equals(await answer.bytes())).toBe(true);
  await server.stop(true);
  expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow();
});
