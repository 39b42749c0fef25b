import { afterAll, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import fc from 'fast-check';
import { temporaryFolder } from '../../started/gateway.ts';
import { brokenPromise, scanRuns } from './scan-model.ts';
import type { ScanCentre } from './scan-world.ts';

const folder = temporaryFolder();
afterAll(() => folder[Symbol.dispose]());

test('whatever dies, is lost, late or said twice, scans keep within their bound and all have a turn', async () => {
  const property = fc.asyncProperty(scanRuns, async (run) =>
    expect(await brokenPromise(run)).toBeUndefined(),
  );
  await fc.assert(property, { numRuns: 120, seed: 4 });
}, 60_000);

/** The centre with a fault. Its file imports types alone, so that a changed copy runs from anywhere. */
async function centreWith(from: string, to: string): Promise<ScanCentre> {
  const source = await Bun.file(join(import.meta.dir, '../../../gateway/lease/centre-scans.ts')).text();
  if (source.split(from).length !== 2) throw new Error(`centre-scans.ts does not hold once: ${from}`);
  const path = join(folder.path, `${Bun.hash(from + to).toString(36)}.ts`);
  await Bun.write(
    path,
    source.replace(from, () => to),
  );
  const { topUpScans }: { topUpScans: ScanCentre } = await import(path);
  return topUpScans;
}

describe('the model finds a centre that', () => {
  test.each([
    ['forgets what others hold', 'free -= heldBy(holding, clockMs);\n    if (isContender', 'if (isContender'],
    ['never ends the lease of the dead', 'return expiresMs > clockMs ? held : 0;', 'return held;'],
    ['ends leases at once', 'return expiresMs > clockMs ? held : 0;', 'return 0;'],
    ['takes a message twice', '(fence === than.fence && seq > than.seq)', 'fence === than.fence'],
    ['takes a restarted process for the one before', 'fence > than.fence ||', ''],
    [
      'adds what is kept to what was held',
      'const held = ask.kept + more;',
      'const held = (known?.held ?? 0) + more;',
    ],
    ['gives to the first who asks', 'holding.sinceMs < sinceMs', 'false'],
    ['tells nobody that others wait', 'others: others || free < 0', 'others: false'],
    ['grants while it learns', 'learning ? 0 : grantable', 'grantable'],
  ])(
    '%s',
    async (_, from, to) => {
      const faulty = await centreWith(from, to);
      const property = fc.asyncProperty(
        scanRuns,
        async (run) => (await brokenPromise(run, faulty)) === undefined,
      );
      const { failed } = await fc.check(property, { numRuns: 150, seed: 4, endOnFailure: true });
      expect(failed).toBe(true);
    },
    60_000,
  );
});
