import { afterEach, beforeEach, expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../../shared/clock.ts';
import { loadConfig } from '../../../shared/config/load.ts';
import { createConfigReader } from '../../../shared/config/reload.ts';
import { temporaryFolder } from '../../started/gateway.ts';

let folder: ReturnType<typeof temporaryFolder>;
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(() => folder[Symbol.dispose]());

/** The reader of an app that was started with these plans, and what puts others into its file; `pauses` come between two reads. */
function reading(
  plans: readonly string[],
  used: () => ReadonlyMap<string, number>,
  pauses: (() => void)[] = [],
) {
  const path = join(folder.path, 'sluice.toml');
  const write = (names: readonly string[]) =>
    writeFileSync(path, `[gateway]\n${names.map((name) => `[plans.${name}]\nrps = 1\n`).join('')}`);
  write(plans);
  const started = loadConfig(path, {});
  if (started.kind === 'unusable') throw new Error(started.lines.join());
  const clock = { ...systemClock, sleep: async () => pauses.shift()?.() };
  const named: unknown[] = [];
  const log = { warn: (fields: object) => void named.push(fields) };
  return { path, write, named, ...createConfigReader(started, { env: {}, used, clock, log }) };
}

test('no plan may go while it is not known whether accounts are on it', async () => {
  const { write, readAgain } = reading(['gold', 'silver'], () => {
    throw new Error('no such table');
  });
  expect((await readAgain()).kind).toBe('loaded');
  write([]);
  const line = 'Plans are gone from the config, and accounts may use them (no such table): gold, silver.';
  expect(await readAgain()).toEqual({ kind: 'unusable', lines: [line] });
});

test('a file has changed when it has another text than the one that was taken last, or none', async () => {
  const { write, readAgain, hasChanged } = reading(['gold'], () => new Map());
  expect(hasChanged()).toBe(false);
  write(['silver']);
  expect(hasChanged()).toBe(true);
  await readAgain();
  expect(hasChanged()).toBe(false);
  folder[Symbol.dispose]();
  expect(hasChanged()).toBe(true);
});

test('a file that is being written is read when it is whole, wherever it was cut before', async () => {
  const whole = '[plans.trial]\ncredits = 5\n[plans.gold]\nrps = 100\ncredits = 7\n';
  const cuts = [...['[plans.gold]', '00\n', 'credits = 7'].map((at) => whole.indexOf(at)), whole.length];
  const pauses = cuts.map((length) => () => writeFileSync(path, whole.slice(0, length)));
  const { path, write, readAgain } = reading(['gold'], () => new Map([['gold', 1]]), pauses);
  write([]);
  const both = await Promise.all([readAgain(), readAgain()]);
  for (const loaded of both) {
    if (loaded.kind === 'unusable') throw new Error(loaded.lines.join());
    expect(loaded.config.plans.get('gold')).toMatchObject({ rps: 100, credits: 7 });
    expect(loaded.config.plans.get('trial')).toMatchObject({ credits: 5 });
  }
});

test('a file that does not rest is refused', async () => {
  let writes = 0;
  const pauses = Array.from({ length: 100 }, () => () => write([`p${writes++}`]));
  const { path, write, readAgain } = reading(['gold'], () => new Map(), pauses);
  const lines = [`The config file ${path} is still being written.`];
  expect(await readAgain()).toEqual({ kind: 'unusable', lines });
  expect(writes).toBeLessThan(100);
});

test('M22 keys that have changed since the start and need a restart are named, and no value', async () => {
  const { path, named, readAgain } = reading(['gold'], () => new Map());
  const write = (text: string) => writeFileSync(path, text);
  write('[plans.gold]\nrps = 2\n[credits]\ndefault = 2\n[credits.methods]\ngetSlot = 3\n');
  await readAgain();
  expect(named).toEqual([]);
  const backend = '[[backends]]\nname = "s3cret"\nurl = "http://127.0.0.1:1/"\n';
  write(`[gateway]\nprocesses = 2\n[deadlines]\nlight = 5\n[plans.gold]\nrps = 3\n${backend}`);
  await readAgain();
  expect(named).toEqual([{ keys: ['gateway.processes', 'deadlines.light', 'backends'] }]);
  write('[plans.gold]\nrps = 3\n');
  await readAgain();
  expect(named).toHaveLength(1);
});
