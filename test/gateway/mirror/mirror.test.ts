import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { createMirror, type Mirror, MIRROR_MIGRATIONS } from '../../../gateway/replica/mirror.ts';
import { createKeySource } from '../../../shared/keys/source.ts';
import { type PublishedRow, rowText } from '../../../shared/publication/row.ts';
import { opened } from '../../started/gateway.ts';

let mirror: Mirror;
beforeEach(() => {
  mirror = createMirror(opened(':memory:', MIRROR_MIGRATIONS));
  mirror.noteHead('there', 't1');
});
afterEach(() => mirror.store.close());

const account: PublishedRow = { kind: 'account', id: 1, plan: 'pro', creditsGranted: null, suspended: false };
const hash = (n: number) => Buffer.alloc(32, n);
const key = (n: number, revokedAtMs: number | null = null): PublishedRow => ({
  kind: 'key',
  id: `k${n}`,
  hash: hash(n).toString('hex'),
  accountId: 1,
  expiresAtMs: null,
  revokedAtMs,
});
/** Takes rows as the changes right behind `from`. */
function take(from: number, rows: readonly PublishedRow[], isLast = true, epoch = 'e1'): void {
  const seqs = rows.map((row, at) => ({ seq: from + at + 1, text: rowText(row) }));
  mirror.take({ epoch, from, rows: seqs, upTo: from + rows.length, isLast });
}
const has = (n: number) => createKeySource(mirror.store).read(hash(n)) !== undefined;

test('is whole when the last of an epoch is here, and not before', () => {
  mirror.begin('e1', 0);
  take(0, [account, key(1)], false);
  expect(mirror.state()).toMatchObject({ position: 2, loading: 1, complete: 0 });
  take(2, [key(2)]);
  expect(mirror.state()).toMatchObject({ position: 3, loading: 0, complete: 1, revision: 3 });
  expect([has(1), has(2)]).toEqual([true, true]);
});

describe('rows', () => {
  beforeEach(() => {
    mirror.begin('e1', 0);
    take(0, [account, key(1)]);
  });

  test('that come again, late, or of another epoch change nothing', () => {
    take(2, [key(1, 5)]);
    const before = mirror.state();
    take(0, [account, key(1)]);
    take(3, [key(1)], true, 'e0');
    expect([mirror.state(), has(1)]).toEqual([before, false]);
  });

  test('say that a key is revoked, and that one is gone', () => {
    take(2, [key(2), key(1, 5)]);
    expect([has(1), has(2)]).toEqual([false, true]);
    take(4, [{ kind: 'gone', subject: 'key', id: 'k2' }]);
    expect(has(2)).toBe(false);
  });

  test('of a later version are passed over', () => {
    const read = { epoch: 'e1', from: 2, rows: [{ seq: 3, text: '["new",1]' }], upTo: 3, isLast: true };
    mirror.take(read);
    expect([mirror.state().position, has(1)]).toEqual([3, true]);
  });
});

test('a new epoch keeps keys working while it is loaded, and drops those that it does not have', () => {
  mirror.begin('e1', 0);
  take(0, [account, key(1), key(2)]);
  mirror.begin('e2', 9);
  expect([has(1), has(2), mirror.state().position, mirror.state().complete]).toEqual([true, true, 0, 1]);
  take(0, [account], false, 'e2');
  expect([mirror.sweep(), has(1)]).toEqual([false, true]);
  take(1, [key(2)], true, 'e2');
  mirror.sweep();
  expect([has(1), has(2)]).toEqual([false, true]);
});

test('a Redis that knows less than before is read on from there', () => {
  mirror.begin('e1', 0);
  take(0, [account, key(1)]);
  mirror.begin('e1', 1);
  expect(mirror.state()).toMatchObject({ position: 1, loading: 0, complete: 1 });
  take(1, [key(1), key(2)]);
  expect([has(1), has(2)]).toEqual([true, true]);
});

test('accounts of another origin take the place of all that was here', () => {
  mirror.begin('e1', 0);
  take(0, [account, key(1)]);
  mirror.noteTerms(4, 'id', '{}');
  mirror.noteHead('elsewhere', 't2');
  expect(mirror.state()).toMatchObject({
    origin: 'elsewhere',
    complete: 0,
    epoch: null,
    config: 0,
    terms: null,
  });
  expect(has(1)).toBe(false);
  mirror.noteNobody();
  expect(mirror.state().nobody).toBe(0);
});
