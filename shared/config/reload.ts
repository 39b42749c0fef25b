import type { Clock } from '../clock.ts';
import type { Log } from '../log.ts';
import { fileReason } from '../store/private.ts';
import { blankComplaint, type Loaded, type LoadedConfig, parseConfig, readConfig } from './load.ts';
import type { Environment } from './table.ts';

/** A file is being written while two reads so far apart differ: cut anywhere, it may still be a config. */
const SETTLED_MS = 200;
/** After so many reads, five seconds, it is refused. */
const READS_MAX = 25;

/**
 * Reads the config of a running app again, when it has not been written for a moment. Refused is one that is unusable, says
 * nothing, or has lost a plan that accounts are on; `used` counts accounts by plan, and may throw. Keys that differ from those
 * of the start and need a restart are named in the log.
 */
export function createConfigReader(
  started: LoadedConfig,
  {
    env,
    used,
    clock,
    log,
  }: Readonly<{
    env: Environment;
    used(): ReadonlyMap<string, number>;
    clock: Clock;
    log: Pick<Log, 'warn'>;
  }>,
) {
  let last = started;
  let underWay: Promise<Loaded> | undefined;
  const file = started.read.text === undefined ? undefined : started.read.name;

  /** Who asks while it is read shares what is found: the last read is still to come. */
  function readAgain(): Promise<Loaded> {
    underWay ??= readSettled().finally(() => (underWay = undefined));
    return underWay;
  }

  async function readSettled(): Promise<Loaded> {
    const { signal } = new AbortController();
    let before = readConfig(file);
    for (let reads = 1; reads < READS_MAX; reads++) {
      await clock.sleep(SETTLED_MS, signal);
      const reading = readConfig(file);
      if (Bun.deepEquals(reading, before)) return take(reading);
      before = reading;
    }
    return { kind: 'unusable', lines: [`The config file ${started.read.name} is still being written.`] };
  }

  function take(reading: ReturnType<typeof readConfig>): Loaded {
    if (reading.kind === 'unusable') return reading;
    const loaded = parseConfig(reading.read, env);
    if (loaded.kind === 'unusable') return loaded;
    const gone = [...last.config.plans.keys()].filter((plan) => !loaded.config.plans.has(plan));
    const blank = blankComplaint(reading.read);
    const lines = blank === undefined ? complaintsAbout(gone) : [blank];
    if (lines.length > 0) return { kind: 'unusable', lines };
    last = loaded;
    const keys = changedKeys(started.read.text, loaded.read.text);
    if (keys.length > 0) log.warn({ keys }, 'these keys of the config have changed and need a restart');
    return loaded;
  }

  function complaintsAbout(gone: readonly string[]): readonly string[] {
    try {
      return gone.length === 0 ? [] : lostPlans(gone, used());
    } catch (error) {
      const why = `Plans are gone from the config, and accounts may use them (${fileReason(error)})`;
      return [`${why}: ${gone.join(', ')}.`];
    }
  }

  function hasChanged(): boolean {
    const reading = readConfig(file);
    return reading.kind === 'unusable' || reading.read.text !== last.read.text;
  }

  return { readAgain, hasChanged };
}

/** Tables that are reloaded. */
const LIVE = new Set(['plans', 'credits']);

/** The keys, such as `gateway.listen`, that differ between two texts and need a restart; a list is one key. */
function changedKeys(before = '', after = ''): readonly string[] {
  const tables = [Bun.TOML.parse(before), Bun.TOML.parse(after)];
  return differences(tables[0], tables[1], '').filter((key) => !LIVE.has(key.split('.', 1)[0] ?? ''));
}

function differences(before: unknown, after: unknown, path: string): readonly string[] {
  if (Bun.deepEquals(before, after, true)) return [];
  if (!isTable(before ?? after) || !isTable(after ?? before)) return [path];
  const [a, b] = [new Map(entriesOf(before)), new Map(entriesOf(after))];
  return [...new Set([...a.keys(), ...b.keys()])].flatMap((key) =>
    differences(a.get(key), b.get(key), path === '' ? key : `${path}.${key}`),
  );
}

const isTable = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value);
const entriesOf = (table: unknown): [string, unknown][] =>
  typeof table === 'object' && table !== null ? Object.entries(table) : [];

export function lostPlans(gone: readonly string[], used: ReadonlyMap<string, number>): readonly string[] {
  return gone
    .filter((plan) => used.has(plan))
    .map((plan) => `Plan ${plan} is gone from the config, but accounts still use it: ${used.get(plan)}.`);
}
