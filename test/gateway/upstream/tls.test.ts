import { afterAll, beforeAll, expect, test } from 'bun:test';
import { join } from 'node:path';
import { childEnv } from '../../started/process.ts';

const TLS = join(import.meta.dir, '../../fixtures/tls');

const BODY = Buffer.alloc(20_000_000, 'x');

let backend: Bun.Server<undefined>;
let calls = 0;
beforeAll(() => {
  backend = Bun.serve({
    hostname: '0.0.0.0',
    port: 0,
    tls: { cert: Bun.file(join(TLS, 'localhost.pem')), key: Bun.file(join(TLS, 'localhost-key.pem')) },
    fetch() {
      calls++;
      return new Response(BODY);
    },
  });
});
afterAll(() => backend.stop(true));

/** How a request to the backend under `host` ends in a process that trusts the test's authority, or does not. */
async function sent(host: string, trusts: boolean): Promise<string> {
  const env = childEnv(trusts ? { NODE_EXTRA_CA_CERTS: join(TLS, 'ca.pem') } : {});
  const url = `https://${host}:${backend.port}/`;
  const child = Bun.spawn([process.execPath, join(import.meta.dir, 'tls-probe.ts'), url], {
    env,
    stdout: 'pipe',
  });
  return (await child.stdout.text()).trim();
}

test('a backend whose certificate is good is sent the request, and its long body arrives whole', async () => {
  expect(await sent('localhost', true)).toBe('reply 200, complete after 20000000 bytes');
});

test.each([
  ['of an authority that nobody trusts', 'localhost', false],
  ['for another name', '127.0.0.1', true],
])('a backend with a certificate %s is sent nothing', async (_name, host, trusts) => {
  const before = calls;
  expect(await sent(host, trusts)).toStartWith('unsent: ');
  expect(calls).toBe(before);
});
