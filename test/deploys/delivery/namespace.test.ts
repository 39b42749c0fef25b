import { beforeAll, describe, expect, test } from 'bun:test';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Makes the namespace's network; `$1` is a resolv.conf. What follows it is run. */
const NETWORK = `set -e
ip link set lo up
ip addr add 198.41.0.44/32 dev lo
ip addr add 10.0.0.1/32 dev lo
ip link add hole type veth peer name end
ip link set hole up
ip link set end up
ip route add 198.41.0.99/32 dev hole
ip neigh add 198.41.0.99 lladdr 02:00:00:00:00:01 dev hole
mount --bind "$1" /etc/resolv.conf
shift
exec "$@"`;

const folder = mkdtempSync(join(tmpdir(), 'resolv-'));
const resolvPath = join(folder, 'resolv.conf');
// A search list that would lead a name that is not found to the good receiver.
writeFileSync(resolvPath, 'nameserver 127.0.0.1\nsearch example.com\n');

function inNamespace(...command: string[]) {
  return ['unshare', '-rnm', 'sh', '-c', NETWORK, 'sh', resolvPath, ...command];
}

/** Why there can be no namespace here; `undefined` if there can. */
function reasonAgainst(): string | undefined {
  try {
    const { exitCode, stderr } = Bun.spawnSync(inNamespace('true'), { timeout: 10_000 });
    return exitCode === 0 ? undefined : stderr.toString().trim() || `exit code ${exitCode}`;
  } catch (error) {
    return error instanceof Error ? error.message : 'unknown';
  }
}

type Result = Readonly<{ how: string; detail: string; totalMs: number }>;
type Report = Readonly<{
  plain: Record<string, Result>;
  hostile: Record<string, Result>;
  rebind: Result[];
  untrusting: Result[];
  reached: Record<string, number>;
  requests: number;
  signed: boolean;
  asked: number;
}>;

const reason = reasonAgainst();
if (reason !== undefined) console.log(`The sender in a network namespace is not tested here: ${reason}`);

describe.skipIf(reason !== undefined)('the product sender in a network of its own', () => {
  let report: Report;
  beforeAll(async () => {
    const world = join(import.meta.dir, 'namespace', 'world.ts');
    const child = Bun.spawn(inNamespace(process.execPath, world), {
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'inherit',
      timeout: 25_000,
    });
    report = JSON.parse(await new Response(child.stdout).text());
    rmSync(folder, { recursive: true });
  }, 30_000);

  const EXPECTED: Readonly<Record<string, string>> = {
    good: '200',
    literal: '200',
    wrongName: 'tls_error',
    selfSigned: 'tls_error',
    loopback: 'blocked_address',
    loopbackHex: 'blocked_address',
    loopbackSix: 'blocked_address',
    loopbackMapped: 'blocked_address',
    localhost: 'blocked_url',
    private: 'blocked_address',
    privateLiteral: 'blocked_address',
    mixed: 'blocked_address',
    mapped: 'blocked_address',
    noSuchName: 'dns_error',
    brokenDns: 'dns_error',
    silentDns: 'dns_timeout',
    halfSilentDns: '200',
    // Bun 1.4.5 gives ECONNREFUSED for ENETUNREACH too.
    noRoute: 'connection_refused',
    hole: 'unreachable',
    halfHole: '200',
    searched: 'dns_error',
  };
  const hows = (results: Record<string, Result>) =>
    Object.fromEntries(Object.entries(results).map(([key, { how }]) => [key, how]));

  test('delivers to public addresses, and nowhere else (E13, E15, E16)', () => {
    expect(hows(report.plain)).toEqual(EXPECTED);
  });
  test('does the same in an environment that asks for proxies and trust (E17, P5, P6)', () => {
    expect(hows(report.hostile)).toEqual(EXPECTED);
  });
  test('is not led inside by a second answer (E14)', () => {
    expect(report.rebind.map(({ how, detail }) => [how, detail])).toEqual([
      ['200', '198.41.0.44'],
      ['blocked_address', '127.0.0.1'],
    ]);
  });
  test('connects to nothing that is inside, and to no proxy', () => {
    expect(report.reached).toEqual({ inside: 0, metadata: 0, proxy: 0, impostorRequests: 0 });
  });
  test('trusts the authorities that every client trusts, and no others', () => {
    expect(report.untrusting.map(({ how }) => how)).toEqual(['tls_error']);
  });
  test('sends what the verifier accepts, once each', () => {
    expect([report.requests, report.signed]).toEqual([2 * 4 + 1, true]);
  });
  test('is not held up by thirty names whose servers are silent (E13)', () => {
    expect(report.plain['good']?.totalMs).toBeLessThan(1_500);
  });
  test('leaves a silent half of DNS within 3 s, and a silent address within 4', () => {
    const { halfSilentDns, silentDns, hole, halfHole } = report.plain;
    expect(halfSilentDns?.totalMs).toBeLessThan(2_700);
    expect(silentDns?.totalMs).toBeLessThan(2_700);
    expect(hole?.totalMs).toBeGreaterThan(3_900);
    expect(hole?.totalMs).toBeLessThan(6_000);
    expect(halfHole?.totalMs).toBeGreaterThan(1_900);
    expect(halfHole?.totalMs).toBeLessThan(3_900);
  });
});
