import { expect, test } from 'bun:test';
import { PAGES as TABLE } from '../../deploys/console/pages.ts';
import { NOT_PAGES, PAGES } from './pages.ts';

test('every address that answers GET is a page of the list, or is named as none', () => {
  const paths = TABLE.filter(({ show }) => show).flatMap(({ path, forms = {}, isReloaded }) => [
    path,
    ...Object.keys(forms).flatMap((added) => (isReloaded && added !== '' ? [`${path}${added}`] : [])),
  ]);
  expect(paths.length).toBeGreaterThan(30);
  expect([...Object.keys(PAGES), ...Object.keys(NOT_PAGES)].toSorted()).toEqual(paths.toSorted());
});
