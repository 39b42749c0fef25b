/** Environment variables, by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * What a value means that names an environment variable which is not set. A command that only works on the database
 * takes it as absent: the secrets of the apps are not its concern, and it may be there to make one of them.
 */
export type Unset = 'is-wrong' | 'is-absent';

/** What one value must look like; `read` gives `undefined` when it does not. */
export type Kind<T> = Readonly<{
  expected: string;
  example: string;
  /** The found value must not be shown in a problem. */
  hidden?: true;
  read(value: unknown): T | undefined;
}>;

/**
 * One TOML table under reading. Every `take` marks its key as known and files a problem instead of throwing;
 * `close` files the unknown keys. `"env:NAME"` is replaced by the environment's value before `read`.
 */
export type Table = Readonly<{
  path: string;
  take<T>(key: string, kind: Kind<T>): T | undefined;
  takeOr<T>(key: string, kind: Kind<T>, fallback: T): T;
  table(key: string): Table;
  tables(key: string): readonly Table[];
  has(key: string): boolean;
  keys(): readonly string[];
  problem(key: string, found: unknown, expected: string, example: string): void;
  close(): void;
}>;

/** What stands for a value that may be a secret: of a secret's key, and of a key that could be meant for one. */
const HIDDEN = Symbol('an invalid value (not shown)');
const UNKNOWN = Symbol('a value (not shown)');

/** What is expected under a key that no part of the config reads; the example lists the known ones. */
export const NO_SUCH_KEY = 'no such key';

/** Opens `value` (a parsed TOML table, or nothing) for reading; problems are appended to `problems`. */
export function openTable(
  value: unknown,
  path: string,
  env: Environment,
  problems: Problem[],
  unset: Unset = 'is-wrong',
): Table {
  const rows: Record<string, unknown> = isTable(value) ? value : {};
  const known = new Set<string>();
  if (value !== undefined && !isTable(value)) file('', UNKNOWN, 'a table', `[${path}]`);

  function file(key: string, found: unknown, expected: string, example: string) {
    problems.push({
      key: joined(path, key),
      found: typeof found === 'symbol' ? (found.description ?? '') : shown(found),
      expected,
      example,
    });
  }

  function take<T>(key: string, kind: Kind<T>): T | undefined {
    known.add(key);
    const raw = rows[key];
    if (raw === undefined) return undefined;
    const value = Array.isArray(raw) ? listFromEnvironment(raw, env) : fromEnvironment(raw, env);
    if (value.kind === 'unset') {
      if (unset === 'is-absent') return undefined;
      file(key, raw, `the environment variable ${value.name} to be set`, `export ${value.name}=…`);
      return undefined;
    }
    const read = kind.read(value.value);
    if (read === undefined) file(key, kind.hidden ? HIDDEN : raw, kind.expected, kind.example);
    return read;
  }

  return {
    path,
    take,
    takeOr: (key, kind, fallback) => take(key, kind) ?? fallback,
    table: (key) => {
      known.add(key);
      return openTable(rows[key], joined(path, key), env, problems, unset);
    },
    tables: (key) => {
      known.add(key);
      const list = rows[key];
      if (list === undefined) return [];
      if (!Array.isArray(list)) {
        file(key, UNKNOWN, 'a list of tables', `[[${joined(path, key)}]]`);
        return [];
      }
      return list.map((item, i) => openTable(item, `${joined(path, key)}[${i}]`, env, problems, unset));
    },
    has: (key) => {
      known.add(key);
      return rows[key] !== undefined;
    },
    keys: () => Object.keys(rows),
    problem: file,
    close: () => {
      for (const key of Object.keys(rows)) {
        if (!known.has(key)) file(key, UNKNOWN, NO_SUCH_KEY, `known keys: ${[...known].join(', ')}`);
      }
    },
  };
}

function joined(path: string, key: string): string {
  if (path === '' || key === '') return path + key;
  return `${path}.${key}`;
}

function isTable(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

type Resolved =
  { readonly kind: 'set'; readonly value: unknown } | { readonly kind: 'unset'; readonly name: string };

function fromEnvironment(raw: unknown, env: Environment): Resolved {
  if (typeof raw !== 'string' || !raw.startsWith('env:')) return { kind: 'set', value: raw };
  const name = raw.slice('env:'.length);
  const value = env[name];
  return value === undefined || value === '' ? { kind: 'unset', name } : { kind: 'set', value };
}

/** A list with every `"env:NAME"` in it replaced, or the first name that is not set. */
function listFromEnvironment(list: readonly unknown[], env: Environment): Resolved {
  const values: unknown[] = [];
  for (const item of list) {
    const resolved = fromEnvironment(item, env);
    if (resolved.kind === 'unset') return resolved;
    values.push(resolved.value);
  }
  return { kind: 'set', value: values };
}

/** One thing wrong with a config file, in words an operator can act on. */
export type Problem = Readonly<{ key: string; found: string; expected: string; example: string }>;

/** The problem as one line: key, what was found, what is expected, an example. */
export function problemLine({ key, found, expected, example }: Problem): string {
  if (expected === NO_SUCH_KEY) return `${key}: unknown key (${example})`;
  return `${key}: found ${found}, expected ${expected} (for example ${example})`;
}

/** A found value, short and on one line. Never called with a value that came from the environment. */
export function shown(value: unknown): string {
  if (value === undefined) return 'nothing';
  const text = typeof value === 'string' ? JSON.stringify(value) : (JSON.stringify(value) ?? String(value));
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}
