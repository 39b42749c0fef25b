import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { storeSize } from '../../../deploys/health/health.ts';
import { opened, temporaryFolder } from '../../started/gateway.ts';

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
