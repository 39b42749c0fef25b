import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { spentOf, USAGE_MIGRATIONS } from '../../../shared/ledger/schema.ts';
import { opened, temporaryFolder } from '../../started/gateway.ts';

test('what an account spent is charged minus refunded, over all nodes and over no other account', () => {
  using folder = temporaryFolder();
  const ledger = opened(join(folder.path, 'ledger.db'), USAGE_MIGRATIONS);
  expect(spentOf(ledger, 1)).toBe(0);
  ledger.run(`INSERT INTO spent VALUES (1, 'a', 100, 30), (1, 'b', 7, 0), (2, 'a', 1000, 0), (3, 'a', 5, 5)`);
  expect([1, 2, 3, 4].map((account) => spentOf(ledger, account))).toEqual([77, 1_000, 0, 0]);
  ledger.close();
});

test('spending beyond 32 bits is exact', () => {
  using folder = temporaryFolder();
  const ledger = opened(join(folder.path, 'ledger.db'), USAGE_MIGRATIONS);
  ledger.run('INSERT INTO spent VALUES (1, ?, ?, 0), (1, ?, 1, 0)', ['a', 2 ** 52, 'b']);
  expect(spentOf(ledger, 1)).toBe(2 ** 52 + 1);
  ledger.close();
});
