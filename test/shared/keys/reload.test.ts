import { afterEach, beforeEach, expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../../shared/config/load.ts';
import { createConfigReader } from '../../../shared/keys/reload.ts';
import { temporaryFolder } from '../../started/gateway.ts';

let folder: ReturnType<typeof temporaryFolder>;
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(() => folder[Symbol.dispose]());

/** The reader of an app that was started with these plans, and what puts others into its file. */
function reading(plans: readonly string[], used: () => ReadonlyMap<string, number>) {
  const path = join(folder.path, 'sluice.toml');
  const write = (names: readonly string[]) =>
    writeFileSync(path, `[gateway]\n${names.map((name) => `[plans.${name}]\nrps = 1\n`).join('')}`);
  write(plans);
  const started = loadConfig(path, {});
  if (started.kind === 'unusable') throw new Error(started.lines.join());
  return { write, ...createConfigReader(started, {}, used) };
}

test('a plan that accounts are on may not go, also after it was refused once; one without accounts may, and one may come', () => {
  const { write, readAgain } = reading(
    ['gold', 'empty'],
    () =>
      new Map([
        ['gold', 2],
        ['never', 1],
      ]),
  );
  write(['new']);
  const lost = { kind: 'unusable', lines: ['The plan gold is gone, and accounts are on it: 2.'] } as const;
  expect([readAgain(), readAgain()]).toEqual([lost, lost]);
  write(['gold', 'new']);
  expect(readAgain().kind).toBe('loaded');
  write([]);
  expect(readAgain()).toEqual(lost);
});

test('no plan may go while it is not known whether accounts are on it', () => {
  const { write, readAgain } = reading(['gold', 'silver'], () => {
    throw new Error('no such table');
  });
  expect(readAgain().kind).toBe('loaded');
  write([]);
  const line = 'Plans are gone, and accounts may be on them (no such table): gold, silver.';
  expect(readAgain()).toEqual({ kind: 'unusable', lines: [line] });
});

test('a file has changed when it has another text than the one that was taken last, or none', () => {
  const { write, readAgain, hasChanged } = reading(['gold'], () => new Map());
  expect(hasChanged()).toBe(false);
  write(['silver']);
  expect(hasChanged()).toBe(true);
  readAgain();
  expect(hasChanged()).toBe(false);
  folder[Symbol.dispose]();
  expect(hasChanged()).toBe(true);
});
