import { expect, test } from 'bun:test';
import { choiceOf, type OwnAccounts } from '../../../gateway/replica/accounts.ts';
import type { MirrorState } from '../../../gateway/replica/mirror.ts';

const NOTHING: MirrorState = {
  origin: null,
  holder: null,
  nobody: 0,
  epoch: null,
  position: 0,
  loading: 0,
  complete: 0,
  generation: 0,
  revision: 0,
  touched: 0,
  config: 0,
  terms_id: null,
  terms: null,
};
/** An accounts database of origin `here`, published by these starts of deploys. */
const own = (...publishers: string[]): OwnAccounts => ({
  origin: 'here',
  hasPublisher: (token) => publishers.includes(token),
  wasPublished: () => publishers.length > 0,
  hasAccounts: () => true,
});
const empty = (...publishers: string[]): OwnAccounts => ({ ...own(...publishers), hasAccounts: () => false });

test.each([
  ['Redis was never reached, and nobody here ever published', {}, own(), 'unknown'],
  ['Redis was never reached, and deploys beside published', {}, own('t1'), 'local'],
  ['nobody publishes', { nobody: 1 }, own(), 'local'],
  ['nobody publishes, and there is no account here', { nobody: 1 }, empty(), 'unknown'],
  ['nobody publishes, and deploys beside did without an account', { nobody: 1 }, empty('t1'), 'local'],
  ['deploys beside publishes', { origin: 'here', holder: 't2' }, own('t1', 't2'), 'local'],
  [
    'deploys beside publishes, and a mirror of before is whole',
    { origin: 'here', holder: 't2', complete: 1 },
    own('t2'),
    'local',
  ],
  ['another publishes, and the mirror is not whole', { origin: 'there', holder: 't9' }, own('t1'), 'unknown'],
  ['another publishes', { origin: 'there', holder: 't9', complete: 1 }, own('t1'), 'mirror'],
  ['a copy publishes, and the mirror is not whole', { origin: 'here', holder: 't9' }, own('t1'), 'local'],
  ['a copy publishes', { origin: 'here', holder: 't9', complete: 1 }, own('t1'), 'mirror'],
] as const)('%s', (_, seen, accounts, choice) => {
  expect(choiceOf({ ...NOTHING, ...seen }, accounts)).toBe(choice);
});
