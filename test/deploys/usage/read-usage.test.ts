import { expect, test } from 'bun:test';
import { csvLine } from '../../../deploys/usage/read-usage.ts';

const COUNTS = { calls: 1, credits: 2, errors: 0, bytes_out: 3, refused: 0 };
const USED = { period: '2026-11-20T00:00Z', accountId: 7, key_id: 'k1', method: '-', ...COUNTS };

test.each([
  ['acme', 'acme'],
  ['Acme, "the" Ltd.', '"Acme, ""the"" Ltd."'],
  ['a=b', 'a=b'],
  ['=HYPERLINK("x")', `"'=HYPERLINK(""x"")"`],
  ...[...'=+-@\uff1d\uff0b\uff0d\uff20'].map((sign) => [`${sign}1`, `'${sign}1`] as const),
  ['\t=1', `"'\t=1"`],
  ['\r=1', `"'\r=1"`],
  [' =1', "' =1"],
  ['Acme;=1+1', `"Acme;'=1+1"`],
  ['Acme; \uff1d1', `"Acme;' \uff1d1"`],
  ['Acme\t@A1', `"Acme\t'@A1"`],
  ['Acme;"=1"', `"Acme;'""=1"""`],
  ['Acme|-1', `"Acme|'-1"`],
  ['Acme - Europe', 'Acme - Europe'],
])('P5 an account named %j is no formula in a spreadsheet, whatever it splits lines by', (name, cell) => {
  expect(csvLine(USED, name)).toBe(`2026-11-20T00:00Z,${cell},k1,-,1,2,0,3,0\n`);
});
