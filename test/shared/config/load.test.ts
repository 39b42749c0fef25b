import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../../shared/config/load.ts';
import { temporaryFolder } from '../../started/gateway.ts';

let folder: ReturnType<typeof temporaryFolder>;
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(() => folder[Symbol.dispose]());

function written(text: string): string {
  const path = join(folder.path, 'sluice.toml');
  writeFileSync(path, text);
  return path;
}

describe('loading a config', () => {
  test('reads the file that is named, and says which it was', () => {
    const path = written('[gateway]\nidle_seconds = 7\n');
    expect(loadConfig(path, {})).toMatchObject({
      kind: 'loaded',
      read: { name: path, text: '[gateway]\nidle_seconds = 7\n' },
      config: { gateway: { idleMs: 7_000 } },
    });
  });
  test('a file that is named and missing is an error, not the default', () => {
    expect(loadConfig(join(folder.path, 'none.toml'), {})).toEqual({
      kind: 'unusable',
      lines: [`The config file ${folder.path}/none.toml cannot be read (ENOENT).`],
    });
  });
  test('what is not TOML is one sentence', () => {
    const loaded = loadConfig(written('[gateway\n'), {});
    expect(loaded.kind === 'unusable' && loaded.lines).toHaveLength(1);
    expect(loaded.kind === 'unusable' && loaded.lines[0]).toStartWith(
      `The config file ${folder.path}/sluice.toml is not valid TOML`,
    );
  });
  test('every problem is a line that begins with the file', () => {
    const path = written('[gateway]\nidle = 7\n[storage]\nsecret = "x"\n');
    const loaded = loadConfig(path, {});
    expect(
      loaded.kind === 'unusable' && loaded.lines.map((line) => line.slice(0, line.indexOf(': found'))),
    ).toEqual([`${path}: gateway.idle`, `${path}: storage.secret`]);
  });
});
