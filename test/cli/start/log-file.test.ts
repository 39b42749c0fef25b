import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { openLogFile } from '../../../cli/start/apps.ts';
import { temporaryFolder } from '../../started/gateway.ts';

let folder: ReturnType<typeof temporaryFolder>;
let path: string;
beforeEach(() => {
  folder = temporaryFolder();
  path = join(folder.path, 'data/app.log');
});
afterEach(() => folder[Symbol.dispose]());

const bytes = (text: string) => new TextEncoder().encode(text);
const textOf = (file: string) => readFileSync(file, 'utf8');

test('a log goes on where the last run ended, and only its owner can read it', () => {
  for (const text of ['one\n', 'two\n']) {
    const log = openLogFile(path);
    log.append(bytes(text));
    log.close();
  }
  expect(textOf(path)).toBe('one\ntwo\n');
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test('a full log becomes the old one, so that two files of the bound are the most there is', () => {
  const log = openLogFile(path, 10);
  log.append(bytes('12345'));
  log.append(bytes('67890'));
  expect(existsSync(`${path}.1`)).toBe(false);
  log.append(bytes('a'));
  expect([textOf(`${path}.1`), textOf(path)]).toEqual(['1234567890', 'a']);
  log.append(bytes('bcdefghij'));
  log.append(bytes('k'));
  expect([textOf(`${path}.1`), textOf(path)]).toEqual(['abcdefghij', 'k']);
  log.close();
});
