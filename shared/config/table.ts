import { type Problem, shown } from './problem.ts';

/** Environment variables, by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * What a value means that names an environment variable which is not set. A command that only works on the database
 * takes it as absent: the secrets of the apps are not its concern, and it may be there to make one of them.
 */
export type Unset = 'is-wrong' | 'is-absent';

/** What one value must look like; `read` gives `undefined` when it does not. */
export type Kind<T> = Readonly<{
  wanted: string;
  example: string;
  /** The found value must not be shown in a problem. */
  hidden?: true;
  read(value: unknown): T | undefined;
}>;

/**
 * One TOML table under reading. Every `take` marks its key as known and files a problem instead of throwing;
 * `close` files the keys nobody asked for. `"env:NAME"` is replaced by the environment's value before `read`.
 */
export type Table = Readonly<{
  path: string;
  take<T>(key: string, kind: Kind<T>): T | undefined;
  takeOr<T>(key: string, kind: Kind<T>, fallback: T): T;
  table(key: string): Table;
  tables(key: string): readonly Table[];
  has(key: string): boolean;
  keys(): readonly string[];
  problem(key: string, found: unknown, wanted: string, example: string): void;
  close(): void;
}>;

/** What stands for a value that may be a secret: of a secret's key, and of a key that could be meant for one. */
const HIDDEN = Symbol('a value that does not fit');
const UNKNOWN = Symbol('a value that is not shown');

/** Opens `value` (a parsed TOML table, or nothing) for reading; problems are appended to `problems`. */
export function openTable(
  value: unknown,
  path: string,
  env: Environment,
  problems: Problem[],
  unset: Unset = 'is-wrong',
): Table {
  const rows: Record<string, unknown> = isTable(value) ? value : {};
  const asked = new Set<string>();
  if (value !== undefined && !isTable(value)) file('', UNKNOWN, 'a table', `[${path}]`);

  function file(key: string, found: unknown, wanted: string, example: string) {
    problems.push({
      key: joined(path, key),
      found: typeof found === 'symbol' ? (found.description ?? '') : shown(found),
      wanted,
      example,
    });
  }

  function take<T>(key: string, kind: Kind<T>): T | undefined {
    asked.add(key);
    const raw = rows[key];
    if (raw === undefined) return undefined;
    const value = Array.isArray(raw) ? listFromEnvironment(raw, env) : fromEnvironment(raw, env);
    if (value.kind === 'unset') {
      if (unset === 'is-absent') return undefined;
      file(key, raw, `the environment variable ${value.name} to be set`, `export ${value.name}=…`);
      return undefined;
    }
    const read = kind.read(value.value);
    if (read === undefined) file(key, kind.hidden ? HIDDEN : raw, kind.wanted, kind.example);
    return read;
  }

  return {
    path,
    take,
    takeOr: (key, kind, fallback) => take(key, kind) ?? fallback,
    table: (key) => {
      asked.add(key);
      return openTable(rows[key], joined(path, key), env, problems, unset);
    },
    tables: (key) => {
      asked.add(key);
      const list = rows[key];
      if (list === undefined) return [];
      if (!Array.isArray(list)) {
        file(key, UNKNOWN, 'a list of tables', `[[${joined(path, key)}]]`);
        return [];
      }
      return list.map((item, i) => openTable(item, `${joined(path, key)}[${i}]`, env, problems, unset));
    },
    has: (key) => {
      asked.add(key);
      return rows[key] !== undefined;
    },
    keys: () => Object.keys(rows),
    problem: file,
    close: () => {
      for (const key of Object.keys(rows)) {
        if (!asked.has(key)) file(key, UNKNOWN, 'no such key', `one of: ${[...asked].join(', ')}`);
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
