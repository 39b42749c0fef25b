import { expect, test } from 'bun:test';
import { tiersOf } from '../../../gateway/history/tiers.ts';
import { backendOf } from '../backend/of.ts';

test('an archive stays one whatever lanes its table names', () => {
  const node = backendOf({ name: 'node' });
  const bigtable = backendOf({ name: 'bigtable', lanes: ['archive'] });
  const faithful = backendOf({ name: 'faithful', profile: 'old-faithful', lanes: ['state', 'archive'] });
  const superbank = backendOf({ name: 'superbank', profile: 'superbank', lanes: ['archive', 'state'] });
  const { live, archive } = tiersOf([faithful, node, superbank, bigtable]);
  expect(live).toEqual([node]);
  expect(archive).toEqual([faithful, superbank, bigtable]);
});
