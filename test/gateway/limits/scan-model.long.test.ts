import { afterAll, describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { temporaryFolder } from '../../started/gateway.ts';
import { authorityWith, faultsIn } from './mutant.ts';
import { brokenPromise, scanRuns } from './scan-model.ts';

const folder = temporaryFolder();
afterAll(() => folder[Symbol.dispose]());

test('whatever dies, is lost, late or comes twice, scans keep within their bound and all have a turn', async () => {
  const property = fc.asyncProperty(scanRuns, async (run) =>
    expect(await brokenPromise(run)).toBeUndefined(),
  );
  await fc.assert(property, { numRuns: 120, seed: 4 });
}, 60_000);

const FAULTS = `
forgets what others hold | free -= scansHeldBy(holding, clockMs); -> ;
never ends the lease of the dead | return expiresMs > clockMs ? held : 0; -> return held;
takes a message twice | if (isNewer(sender, mine)) -> if (sender.fence >= mine.fence)
hides that others wait | contended: isWanted || free < 0 -> contended: false
grants while it learns | learning ? 0 : grantable -> grantable
`;

describe('the model finds an authority that', () => {
  test.each(faultsIn(FAULTS))(
    '%s',
    async (_, from, to) => {
      const faulty = await authorityWith(from, to, folder.path);
      const property = fc.asyncProperty(
        scanRuns,
        async (run) => (await brokenPromise(run, faulty)) === undefined,
      );
      const { failed } = await fc.check(property, { numRuns: 600, seed: 4, endOnFailure: true });
      expect(failed).toBe(true);
    },
    60_000,
  );
});
