import { describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { internetPolicy, isPublicAddress } from '../../../deploys/delivery/policy.ts';
import { silent } from '../../fakes/receiver-faults.ts';
import { startReceiver } from '../../fakes/receiver.ts';
import { startGood } from './sending.ts';

const ROOT = join(import.meta.dir, '../../..');

test('the policy of the product is made of constants', () => {
  const { isPublic, ca, ownHosts } = internetPolicy(['console.example.com']);
  expect([isPublic, ca, ownHosts]).toEqual([isPublicAddress, undefined, ['console.example.com']]);
});

test.each([
  [443, true],
  [8443, true],
  [1024, true],
  [65_535, true],
  [442, false],
  [444, false],
  [1023, false],
  [65_536, false],
  [0, false],
  [2049, false],
  [6667, false],
  [10_080, false],
])('port %d: %p', (port, isAllowed) => expect(internetPolicy([]).allowedPorts(port)).toBe(isAllowed));

test('every port from 1024 up is allowed, but for those that the Fetch standard calls bad', () => {
  const { allowedPorts } = internetPolicy([]);
  const refused = Array.from({ length: 65_536 - 1_024 }, (_, i) => 1_024 + i).filter(
    (port) => !allowedPorts(port),
  );
  expect(refused).toEqual([
    1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679,
    6697, 10_080,
  ]);
});

test('no word of the configuration could loosen it', async () => {
  const files = [...new Bun.Glob('shared/config/*.ts').scanSync({ cwd: ROOT }), 'sluice.example.toml'];
  const texts = await Promise.all(files.map((path) => Bun.file(join(ROOT, path)).text()));
  expect(texts.join('\n').length).toBeGreaterThan(10_000);
  const loose = /allow_?private|insecure|unauthorized|['"]ca['"]|\bca_\w+|is_?public|self_?signed/i;
  expect(texts.map((text) => loose.exec(text)?.[0]).filter(Boolean)).toEqual([]);
});

test('one place of the product makes a policy, and none reads the environment for it', async () => {
  const paths = [...new Bun.Glob('{deploys,shared,cli}/**/*.ts').scanSync({ cwd: ROOT })];
  const sources = await Promise.all(
    paths.map(async (path) => ({ path, text: await Bun.file(join(ROOT, path)).text() })),
  );
  const naming = (pattern: RegExp) =>
    sources.filter(({ text }) => pattern.test(text)).map(({ path }) => path);
  expect(naming(/\bisPublic:/)).toEqual(['deploys/delivery/policy.ts']);
  expect(naming(/\bNODE_TLS_REJECT_UNAUTHORIZED\b/)).toEqual([]);
});

describe('a real process in a hostile environment', () => {
  test('connects to nothing on this machine, and to no proxy (E16, E17)', async () => {
    using inside = await startGood({ script: silent });
    using proxy = await startReceiver({ script: silent });
    const address = `http://127.0.0.1:${proxy.port}`;
    const hosts = [
      '127.0.0.1',
      'localhost',
      'a.localhost',
      '2130706433',
      '[::1]',
      '[::ffff:7f00:1]',
      '0.0.0.0',
    ];
    const urls = hosts.map((host) => `https://${host}:${inside.port}/`);
    const child = Bun.spawn([process.execPath, join(import.meta.dir, 'namespace', 'main.ts'), ...urls], {
      env: {
        PATH: process.env['PATH'] ?? '',
        NODE_TLS_REJECT_UNAUTHORIZED: '0',
        NODE_USE_ENV_PROXY: '1',
        HTTPS_PROXY: address,
        HTTP_PROXY: address,
        ALL_PROXY: address,
        NO_PROXY: '',
        ALLOW_PRIVATE: '1',
        WEBHOOK_ALLOW_PRIVATE: 'true',
        SLUICE_ALLOW_PRIVATE: 'true',
        NODE_ENV: 'test',
      },
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'ignore',
    });
    const results: { how: string }[] = JSON.parse(await new Response(child.stdout).text());
    const [literal, local, sub, ...rest] = results.map(({ how }) => how);
    expect([literal, local, sub]).toEqual(['blocked_address', 'blocked_url', 'blocked_url']);
    expect(rest).toEqual(rest.map(() => 'blocked_address'));
    expect(rest).toHaveLength(4);
    expect([inside.connections(), proxy.connections()]).toEqual([0, 0]);
  });
});
