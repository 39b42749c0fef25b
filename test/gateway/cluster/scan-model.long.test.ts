import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { brokenPromise, scanRuns } from './scan-model.ts';

test('whatever dies, is lost, late or comes twice, scans keep within their bound and all have a turn', async () => {
  const property = fc.asyncProperty(scanRuns, async (run) =>
    expect(await brokenPromise(run)).toBeUndefined(),
  );
  await fc.assert(property, { numRuns: 240, seed: 4 });
}, 120_000);
