import { expect, test } from 'bun:test';
import { csvLine } from '../../../deploys/usage/usage-csv.ts';

const USED = {
  period: '2026-11-20T00:00Z',
  accountId: 7,
  keyId: 'k1',
  method: '-',
  calls: 1,
  credits: 2,
  errors: 0,
  bytesOut: 3,
  refused: 0,
};

test.each([
  ['acme', 'acme'],
  ['Acme, "the" Ltd.', '"Acme, ""the"" Ltd."'],
  ['a=b', 'a=b'],
  ['=HYPERLINK("x")', `"'=HYPERLINK(""x"")"`],
  ['+1', "'+1"],
  ['-1', "'-1"],
  ['@SUM(1)', "'@SUM(1)"],
])('an account named %s is no formula in a spreadsheet', (name, cell) => {
  expect(csvLine(USED, name)).toBe(`2026-11-20T00:00Z,${cell},k1,-,1,2,0,3,0\n`);
});
