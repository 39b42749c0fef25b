import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  createResolvePublic,
  internetPolicy,
  isPublicAddress,
  literalOf,
  readWebhookUrl,
  type UrlProblem,
} from '../../../deploys/delivery/policy.ts';
import { createVirtualClock } from '../../fakes/chain-clock.ts';
import { silent } from '../../fakes/receiver-faults.ts';
import { startReceiver } from '../../fakes/receiver.ts';
import { hostileEnvironment } from './namespace/hostile.ts';
import { startGood } from './sending.ts';

const ROOT = join(import.meta.dir, '../../..');

test('443, 8443 and every port from 1024 up are allowed, but for those that the Fetch standard calls bad', () => {
  const policy = internetPolicy([]);
  const isAllowed = (port: number) => readWebhookUrl(`https://a.example.com:${port}/`, policy) instanceof URL;
  const ports = Array.from({ length: 65_536 }, (_, port) => port);
  expect(ports.filter((port) => port < 1_024 && isAllowed(port))).toEqual([443]);
  expect(ports.filter((port) => port >= 1_024 && !isAllowed(port))).toEqual([
    1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679,
    6697, 10_080,
  ]);
});

test('one place of the product makes a policy, and none reads the environment or a config for it', async () => {
  const paths = [...new Bun.Glob('{deploys,shared,cli}/**/*.ts').scanSync({ cwd: ROOT })];
  const naming = (pattern: RegExp) =>
    paths.filter((path) => pattern.test(readFileSync(join(ROOT, path), 'utf8')));
  expect(naming(/\bisPublic:/)).toEqual(['deploys/delivery/policy.ts']);
  expect(naming(/\bNODE_TLS_REJECT_UNAUTHORIZED\b|allow_?private/i)).toEqual([]);
});

test('a real process in a hostile environment connects to nothing on this machine, and to no proxy (E16, E17)', async () => {
  using inside = await startGood({ script: silent });
  using proxy = await startReceiver({ script: silent });
  const hosts = [
    '127.0.0.1',
    '2130706433',
    '[::1]',
    '[::ffff:7f00:1]',
    '0.0.0.0',
    'localhost',
    'a.localhost',
  ];
  const urls = hosts.map((host) => `https://${host}:${inside.port}/`);
  const child = Bun.spawn([process.execPath, join(import.meta.dir, 'namespace', 'main.ts'), ...urls], {
    env: { PATH: process.env['PATH'] ?? '', ...hostileEnvironment(`http://127.0.0.1:${proxy.port}`) },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'ignore',
  });
  const codes = await new Response(child.stdout).json();
  expect(codes).toEqual([...new Array<string>(5).fill('blocked_address'), 'blocked_url', 'blocked_url']); // oxlint-disable-line unicorn/no-new-array -- five
  expect([inside.connections(), proxy.connections()]).toEqual([0, 0]);
});

const POLICY = internetPolicy(['console.example.com']);
const read = (text: string) => readWebhookUrl(text, POLICY);

test.each([
  ['https://hooks.example.com', 'https://hooks.example.com/'],
  ['HTTPS://Hooks.Example.COM:443/a?b=c', 'https://hooks.example.com/a?b=c'],
  ['https://hooks.example.com:8443/', 'https://hooks.example.com:8443/'],
  ['https://bücher.example.com/', 'https://xn--bcher-kva.example.com/'],
  ['https://198.41.0.44/', 'https://198.41.0.44/'],
  ['https://[2001:503:ba3e::2:30]/', 'https://[2001:503:ba3e::2:30]/'],
  ['https://a_b.example.com/', 'https://a_b.example.com/'],
])('%s is kept as %s', (text, href) => {
  expect(String(read(text))).toBe(href);
});

const HOST = 'https://hooks.example.com';
const PRIVATE =
  'intranet localhost printer.local a.internal a.onion a.test hooks.example.com. console.example.com';
const PROBLEMS: Readonly<Record<UrlProblem, readonly string[]>> = {
  too_long: [`${HOST}/${'a'.repeat(2_048)}`, `${HOST}/${'é'.repeat(500)}`],
  odd_characters: [`${HOST}/\n`, `${HOST}/\r\nx-a: b`, 'https:\\\\hooks.example.com', `${HOST}/\u0085`],
  not_a_url: ['', 'https://[fe80::1%25eth0]/', `${HOST}:65536/`, 'https://256.256.256.256/'],
  not_https: ['http://hooks.example.com/'],
  has_credentials: ['https://user@hooks.example.com/', 'https://good.example.com@127.0.0.1/'],
  has_fragment: [`${HOST}/#`],
  not_public_name: PRIVATE.split(' ').map((name) => `https://${name}/`),
  port_not_allowed: [`${HOST}:0/`, `${HOST}:6667/`],
};

test.each(Object.entries(PROBLEMS))('a URL breaks the rule %s', (problem, texts) => {
  expect(texts.map(read)).toEqual(texts.map(() => problem as UrlProblem)); // the keys of the table
});

test.each([
  ['https://2130706433/', '127.0.0.1'],
  ['https://0x7f.1/', '127.0.0.1'],
  ['https://0177.0.0.1/', '127.0.0.1'],
  ['https://127.0.0.1./', '127.0.0.1'],
  ['https://%31%32%37.0.0.1/', '127.0.0.1'],
  ['https://１２７.０.０.１/', '127.0.0.1'],
  ['https://①②⑦.0.0.1/', '127.0.0.1'],
  ['https://0/', '0.0.0.0'],
  ['https://[::ffff:127.0.0.1]/', '::ffff:7f00:1'],
  ['https://[::127.0.0.1]/', '::7f00:1'],
  ['https://[::1]/', '::1'],
  ['https://[::]/', '::'],
])('a private address is seen behind %s (E16)', (text, address) => {
  const url = read(text);
  const literal = url instanceof URL ? literalOf(url) : undefined;
  expect(literal).toBe(address);
  expect(isPublicAddress(literal ?? '')).toBe(false);
});

const never = new AbortController().signal;
const TIMED_OUT = { kind: 'unresolved', code: 'dns_timeout', detail: 'no response from DNS' } as const;
const failing = (code: string) => () => Promise.reject(Object.assign(new Error('no'), { code }));

function vetOf(resolve: (host: string) => Promise<readonly string[]>, clock = createVirtualClock()) {
  return createResolvePublic({ resolve, isPublic: isPublicAddress }, clock);
}

test.each([
  [['10.0.0.1']],
  [['1.1.1.1', '10.0.0.1']],
  [['1.1.1.1', '::1']],
  [['::ffff:1.1.1.1']],
  [['64:ff9b::1.1.1.1']],
  [['fe80::1%eth0']],
  [['nonsense']],
  [[...new Array<string>(16).fill('1.1.1.1'), '127.0.0.1']], // oxlint-disable-line unicorn/no-new-array -- sixteen
])('one address that is not public rejects %j (E15)', async (addresses) => {
  const vetted = await vetOf(() => Promise.resolve(addresses))('a.example', never);
  expect(vetted).toEqual({
    kind: 'not-public',
    code: 'blocked_address',
    detail: addresses.slice(0, 16).join(', '),
  });
});

test('at most 16 addresses are pinned, in their order', async () => {
  const addresses = ['2606:4700::1111', ...Array.from({ length: 40 }, (_, i) => `1.1.1.${i}`)];
  const vetted = await vetOf(() => Promise.resolve(addresses))('a.example', never);
  const pins = addresses.slice(0, 16).map((address, i) => ({ address, family: i === 0 ? 6 : 4 }));
  expect(vetted).toEqual({ kind: 'public', pins } as never); // at least one
});

test.each([
  [() => Promise.resolve([]), { kind: 'no-address', code: 'dns_error', detail: 'the name has no address' }],
  [failing('ESERVFAIL'), { kind: 'unresolved', code: 'dns_error', detail: 'ESERVFAIL' }],
  [failing('ETIMEOUT'), TIMED_OUT],
  [failing('a secret'), { kind: 'unresolved', code: 'dns_error', detail: 'unknown' }],
])('an empty answer and an error of DNS are told apart (E13): %p %p', async (resolve, expected) => {
  expect(await vetOf(resolve)('a.example', never)).toEqual(expected as never); // of the table
});

test('concurrent lookups of a host are shared, later ones are made again', async () => {
  const lookups: ((answer: string[]) => void)[] = [];
  const vet = vetOf(() => new Promise((resolve) => lookups.push(resolve)));
  const asked = ['a.example', 'a.example', 'b.example'].map((host) => vet(host, never));
  for (const answer of lookups) answer(['1.1.1.1']);
  expect((await Promise.all(asked)).map(({ kind }) => kind)).toEqual(['public', 'public', 'public']);
  void vet('a.example', never);
  expect(lookups).toHaveLength(3);
});

test('a silent name server costs 3 s, and delays no other name (E13)', async () => {
  const clock = createVirtualClock();
  const vet = vetOf(
    (host) => (host === 'a.example' ? new Promise(() => {}) : Promise.resolve(['1.1.1.1'])),
    clock,
  );
  const ends: unknown[] = [];
  const silent = vet('a.example', never).then((end) => ends.push(end));
  expect(await vet('b.example', never)).toMatchObject({ kind: 'public' });
  await clock.advance(2_999);
  expect(ends).toEqual([]);
  await clock.advance(1);
  await silent;
  expect([ends, clock.sleepers()]).toEqual([[TIMED_OUT], 0]);
});

test('at most 1,024 lookups are under way', async () => {
  let started = 0;
  const clock = createVirtualClock();
  const vet = vetOf(() => (started++, new Promise(() => {})), clock);
  const all = Array.from({ length: 1_025 }, (_, i) => vet(`${i}.example`, never));
  expect(await all[1_024]).toEqual({ kind: 'unresolved', code: 'dns_error', detail: 'EBUSY' });
  expect(started).toBe(1_024);
  await clock.advance(3_000);
  await Promise.all(all);
});
