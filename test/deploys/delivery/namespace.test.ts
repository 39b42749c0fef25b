import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { createNamespace } from './namespace/network.ts';

type Result = Readonly<{ how: string; detail: string }>;
type Report = Readonly<{
  plain: Record<string, Result>;
  hostile: Record<string, Result>;
  mute: Result[];
  rebind: Result[];
  untrusting: Result[];
  reached: Record<string, number>;
  requests: number;
  signed: boolean;
  asked: number;
}>;

const namespace = createNamespace();
afterAll(namespace[Symbol.dispose]);
const reason = namespace.reasonAgainst();
if (reason !== undefined) console.log(`The sender in a network namespace is not tested here: ${reason}`);

describe.skipIf(reason !== undefined)('the product sender in a network of its own', () => {
  let report: Report;
  beforeAll(async () => {
    report = await namespace.report(join(import.meta.dir, 'namespace', 'world.ts'), 25_000);
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
  test('is not held up by thirty names that were asked for before, and whose servers are silent (E13)', () => {
    expect(new Set(report.mute.map(({ how }) => how))).toEqual(new Set(['dns_timeout']));
    expect(report.plain['good']?.how).toBe('200');
  });
});
