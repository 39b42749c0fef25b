import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { createNamespace } from '../../started/namespace.ts';

type SeenVisit = Readonly<{
  path: string;
  event: { id: string; event: string; data: Record<string, unknown> };
  isOfItsSecret: number;
  delivery: string;
  afterDetectionMs: number;
}>;
type Report = Readonly<{
  refused: Record<string, number>;
  made: Record<string, number>;
  upgrade: Record<string, unknown>;
  shownSlot: unknown;
  attempts: Record<string, Readonly<Record<string, unknown>>>;
  visits: SeenVisit[];
  code: number;
  reached: Record<string, number>;
  keyLog: boolean;
}>;

const namespace = createNamespace();
afterAll(namespace[Symbol.dispose]);
const reason = namespace.reasonAgainst();
if (reason !== undefined) console.log(`The app in a network namespace is not tested here: ${reason}`);

describe.skipIf(reason !== undefined)('the unmodified app in a hostile environment', () => {
  let report: Report;
  beforeAll(async () => {
    report = await namespace.report(join(import.meta.dir, 'namespace', 'app-world.ts'), 80_000);
  }, 90_000);

  test('takes no URL that leads inward, at creation (E14, E15, E16, E17)', () => {
    expect(new Set(Object.values(report.refused))).toEqual(new Set([422]));
    expect(Object.keys(report.refused)).toHaveLength(12);
    expect(new Set(Object.values(report.made))).toEqual(new Set([201]));
  });

  test('shows a real upgrade, and delivers it to a public address within 5 s, signed for the published verifier', () => {
    expect(report.shownSlot).toBe(report.upgrade['deploy_slot']);
    const delivered = { how: 'succeeded', status: 200, error: null, remote: '198.41.0.44' };
    expect([report.attempts['good'], report.attempts['literal']]).toEqual([delivered, delivered]);
    expect(report.visits.map(({ path }) => path).filter((path) => path.startsWith('/hook'))).toHaveLength(2);
    for (const { event, isOfItsSecret, delivery, afterDetectionMs } of report.visits) {
      expect([event.event, delivery, isOfItsSecret]).toEqual(['program.upgraded', event.id, 1]);
      expect(event.data).toMatchObject(report.upgrade);
      expect(afterDetectionMs).toBeWithin(0, 5_000);
    }
  });

  test('sends nothing inward, wherever the row or the name leads by then (E14, E16)', () => {
    const blocked = { how: 'blocked', status: null, error: 'blocked_address', remote: null };
    const { attempts } = report;
    const inward = 'rebind metadata loopback loopbackSix mapped loopbackName privateName privateLiteral';
    for (const key of inward.split(' ')) expect([key, attempts[key]]).toEqual([key, blocked]);
    // Either answer of a name that turns may come; the inward one is never followed.
    expect(['succeeded', 'blocked']).toContain(String(attempts['turning']?.['how']));
    expect(report.reached).toEqual({ loopback: 0, internal: 0, proxy: 0, impostorRequests: 0 });
  });

  test('follows DNS as it is, without hosts file and search list, and waits for no silent server (E13)', () => {
    const errors: Readonly<Record<string, unknown>> = {
      nx: 'dns_error',
      broken: 'dns_error',
      searched: 'dns_error',
      mute0: 'dns_timeout',
      mute9: 'dns_timeout',
      lame: null,
      hole: 'unreachable',
      half: null,
      nowhere: 'connection_refused', // Bun 1.4.5 gives ECONNREFUSED for ENETUNREACH too
    };
    const seen = Object.keys(errors).map((key) => [key, report.attempts[key]?.['error']]);
    expect(Object.fromEntries(seen)).toEqual(errors);
  });

  test('trusts no other receiver, writes no keys of its connections, and stops when it is told to', () => {
    for (const key of ['selfSigned', 'wrongName'])
      expect(report.attempts[key]).toMatchObject({ how: 'failed', error: 'tls_error' });
    expect([report.keyLog, report.code]).toEqual([false, 0]);
  });
});
