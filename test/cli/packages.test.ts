import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { installPackages, packagesAreStale } from '../../cli/packages.ts';
import { temporaryFolder } from '../started/gateway.ts';
import { plainEnv } from './sluice.ts';

let folder: ReturnType<typeof temporaryFolder>;
beforeEach(async () => {
  folder = temporaryFolder();
  write('local/package.json', '{ "name": "local", "version": "1.0.0" }');
  write('package.json', '{ "name": "small", "dependencies": { "local": "file:./local" } }');
  const lock = Bun.spawn([process.execPath, 'install', '--lockfile-only'], {
    cwd: folder.path,
    env: plainEnv(),
    stdout: 'ignore',
    stderr: 'ignore',
  });
  expect(await lock.exited).toBe(0);
});
afterEach(() => folder[Symbol.dispose]());

function write(path: string, text: string) {
  const file = join(folder.path, path);
  Bun.spawnSync(['mkdir', '-p', join(file, '..')]);
  writeFileSync(file, text);
}

test('M27 packages that are missing are stale, installed after that was said, and then not stale', async () => {
  expect(packagesAreStale(folder.path)).toBe(true);
  const said: [text: string, isInstalled: boolean][] = [];
  const say = (text: string) => said.push([text, existsSync(join(folder.path, 'node_modules'))]);
  expect(await installPackages(folder.path, plainEnv(), say)).toBeUndefined();
  expect(said).toEqual([[`Installing packages into ${join(folder.path, 'node_modules')}...\n`, false]]);
  expect(await installPackages(folder.path, plainEnv(), say)).toBeUndefined();
  expect(said).toHaveLength(1);
  expect(existsSync(join(folder.path, 'node_modules/local/package.json'))).toBe(true);
  expect(packagesAreStale(folder.path)).toBe(false);
});

test('M27 a newer lock file makes them stale, also by less than a millisecond, until an install that may find nothing to do', async () => {
  await installPackages(folder.path, plainEnv(), () => undefined);
  const laterSeconds = Math.ceil(Date.now() / 1_000) + 60.0004;
  utimesSync(join(folder.path, 'bun.lock'), laterSeconds, laterSeconds);
  expect(packagesAreStale(folder.path)).toBe(true);
  await installPackages(folder.path, plainEnv(), () => undefined);
  expect(packagesAreStale(folder.path)).toBe(false);
});
