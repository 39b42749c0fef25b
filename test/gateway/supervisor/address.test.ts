import { afterAll, expect, test } from 'bun:test';
import { holdAddress } from '../../../gateway/supervisor.ts';

const hostname = '127.0.0.1';
const servers: Bun.Server<undefined>[] = [];
const serve = (port: number, reusePort: boolean) => {
  const server = Bun.serve({ hostname, port, reusePort, fetch: () => new Response('hello') });
  servers.push(server);
  return server;
};
afterAll(() => Promise.all(servers.map((server) => server.stop(true))));

const held = (port: number) => {
  const holding = holdAddress({ hostname, port });
  if (holding.kind === 'refused') throw new Error(holding.sentence);
  return holding.address;
};

test('a port that is let go of may be shared by several listeners at once', async () => {
  const port = await held(0).port();
  expect([serve(port, true).port, serve(port, true).port]).toEqual([port, port]);
});

test.each([true, false])('an address that a stranger has is refused, though he shares it: %p', (shares) => {
  const port = serve(0, shares).port ?? 0;
  expect(holdAddress({ hostname, port })).toEqual({
    kind: 'refused',
    sentence: `The address 127.0.0.1:${port} cannot be listened on (another process has it); free it or change gateway.listen in the config.`,
  });
});

test('nobody else gets it while it is held, sharing or not', async () => {
  const port = await held(0).port();
  const address = held(port);
  expect(() => serve(port, true)).toThrow('in use');
  expect(await address.port()).toBe(port);
  expect(await address.port()).toBe(port);
});
