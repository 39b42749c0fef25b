import { expect, test } from 'bun:test';
import { copyFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { createStoresHealth, storeSize } from '../../../deploys/health/health.ts';
import { healthOf, type Unread } from '../../../deploys/watch/watcher.ts';
import { addressOf } from '../../fakes/chain.ts';
import { opened, temporaryFolder } from '../../started/gateway.ts';

const latest = {
  reading: { contextSlot: 77n, programs: new Map([[addressOf('A'), { status: 'missing' } as const]]) },
  checkedAtMs: 1_000_000,
};
const trouble: Unread = {
  kind: 'failed',
  reasons: ['a returned HTTP 502', 'b is behind the previous reading'],
};

test.each([
  [0, true, 'ok: 1 programs, read 0 s ago at slot 77.'],
  [180_000, true, 'ok: 1 programs, read 180 s ago at slot 77.'],
  [180_001, false, 'Data is stale: 1 programs, read 180 s ago at slot 77.'],
  [-5_000, true, 'ok: 1 programs, read 0 s ago at slot 77.'],
])('%i ms after a reading, being well is %p', (ageMs, isWell, sentence) => {
  expect(healthOf({ latest, trouble: undefined }, 60_000, 1_000_000 + ageMs)).toEqual({ isWell, sentence });
});

test('before the first reading health fails, and says why, but for internal errors', () => {
  const broken: Unread = { kind: 'broken', error: new Error('/secret/path') };
  const { sentence } = healthOf({ latest, trouble: broken }, 60_000, 1_000_000);
  expect(sentence).not.toContain('/secret/path');
  expect(healthOf({ latest: undefined, trouble: undefined }, 60_000, 0)).toEqual({
    isWell: false,
    sentence: 'Programs have not been read from the chain yet.',
  });
  expect(healthOf({ latest: undefined, trouble }, 60_000, 0).sentence).toBe(
    'Programs have not been read from the chain yet. The last reading failed: a returned HTTP 502; b is behind the previous reading.',
  );
});

test('M16 deploys is not well while a database of its own is deleted, replaced or cannot be read', () => {
  using folder = temporaryFolder();
  const [path, aside] = [join(folder.path, 'sluice.db'), join(folder.path, 'aside')];
  const store = opened(path, {});
  const health = createStoresHealth([store]);
  expect(health().isWell).toBe(true);
  const remedy = 'restart every app when the right file is in its place.';
  renameSync(path, aside);
  const deleted = `The database sluice.db was deleted under this process; ${remedy}`;
  expect(health()).toEqual({ isWell: false, sentence: deleted });
  copyFileSync(aside, path);
  expect(health().sentence).toBe(`The database sluice.db was replaced under this process; ${remedy}`);
  renameSync(aside, path);
  store.run('ALTER TABLE migrations RENAME TO hidden');
  expect(health().sentence).toStartWith('The database sluice.db cannot be read (');
  store.close();
});

test('a database is as large as its file, and its log beside it', () => {
  using folder = temporaryFolder();
  const path = join(folder.path, 'a.db');
  expect(storeSize('a', path)).toEqual({ name: 'a', bytes: 0, walBytes: 0 });
  const store = opened(path, { 'a-1': 'CREATE TABLE t (x BLOB)' });
  store.run('INSERT INTO t VALUES (zeroblob(100000))');
  expect(storeSize('a', path).walBytes).toBeGreaterThan(100_000);
  store.run('PRAGMA wal_checkpoint(TRUNCATE)');
  const { bytes, walBytes } = storeSize('a', path);
  expect([bytes > 100_000, walBytes]).toEqual([true, 0]);
  store.close();
});
