export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * How a value counts that names an environment variable which is not set. A command that only works on the database
 * takes it as absent: the secrets of the apps are not its concern, and it may be there to make one of them.
 */
export type Unset = 'is-wrong' | 'is-absent';

/** The form of one value; `read` gives `undefined` when it does not. */
export type Kind<T> = Readonly<{
  expected: string;
  example: string;
  /** The found value must not be shown in a problem. */
  hidden?: true;
  read(value: unknown): T | undefined;
}>;

/** Stands for a value that may be a secret: of a secret's key, and of a key that could be meant for one. */
const HIDDEN = Symbol('an invalid value (not shown)');
const UNKNOWN = Symbol('a value (not shown)');

/** The complaint about a key that no part of the config reads; the example lists the known ones. */
export const NO_SUCH_KEY = 'no such key';

/** State that the tables of one document share: the problems found in it are appended to `problems`. */
type Reading = Readonly<{ env: Environment; problems: Problem[]; unset?: Unset }>;

/**
 * One TOML table under reading. Every `take` marks its key as known and files a problem instead of throwing;
 * `close` files the unknown keys. `"env:NAME"` is replaced by the environment's value before `read`.
 */
export class Table {
  readonly #path: string;
  readonly #reading: Reading;
  readonly #rows: Readonly<Record<string, unknown>>;
  readonly #known = new Set<string>();

  constructor(value: unknown, path: string, reading: Reading) {
    this.#path = path;
    this.#reading = reading;
    this.#rows = isTable(value) ? value : {};
    if (value !== undefined && !isTable(value)) this.problem('', UNKNOWN, 'a table', `[${path}]`);
  }

  take<T>(key: string, kind: Kind<T>): T | undefined {
    const { env, unset } = this.#reading;
    const raw = this.has(key) ? this.#rows[key] : undefined;
    if (raw === undefined) return undefined;
    const missing: string[] = [];
    const resolve = (item: unknown): unknown => {
      if (typeof item !== 'string' || !item.startsWith('env:')) return item;
      const name = item.slice('env:'.length);
      if ((env[name] ?? '') === '') missing.push(name);
      return env[name];
    };
    const value: unknown = Array.isArray(raw) ? raw.map(resolve) : resolve(raw);
    const [name] = missing;
    if (name !== undefined) {
      const expected = `the environment variable ${name} to be set`;
      if (unset !== 'is-absent') this.problem(key, raw, expected, `export ${name}=…`);
      return undefined;
    }
    const read = kind.read(value);
    if (read === undefined) this.problem(key, kind.hidden ? HIDDEN : raw, kind.expected, kind.example);
    return read;
  }

  takeOr<T>(key: string, kind: Kind<T>, fallback: T): T {
    return this.take(key, kind) ?? fallback;
  }

  /** A value that must be there; `expected` says what is missing without it. */
  need<T>(key: string, kind: Kind<T>, expected: string): T | undefined {
    if (!this.has(key)) this.problem(key, undefined, expected, kind.example);
    return this.take(key, kind);
  }

  table(key: string): Table {
    this.#known.add(key);
    return new Table(this.#rows[key], joined(this.#path, key), this.#reading);
  }

  tables(key: string): readonly Table[] {
    const list = this.has(key) ? this.#rows[key] : [];
    const path = joined(this.#path, key);
    if (!Array.isArray(list)) {
      this.problem(key, UNKNOWN, 'a list of tables', `[[${path}]]`);
      return [];
    }
    return list.map((item, i) => new Table(item, `${path}[${i}]`, this.#reading));
  }

  has(key: string): boolean {
    this.#known.add(key);
    return this.#rows[key] !== undefined;
  }

  keys(): readonly string[] {
    return Object.keys(this.#rows);
  }

  problem(key: string, found: unknown, expected: string, example: string): void {
    this.#reading.problems.push({
      key: joined(this.#path, key),
      found: typeof found === 'symbol' ? (found.description ?? '') : shown(found),
      expected,
      example,
    });
  }

  /** Ends the reading of the table, when that is all. */
  close<Values>(values: Values): Values {
    const known = `known keys: ${[...this.#known].join(', ')}`;
    for (const key of this.keys()) if (!this.#known.has(key)) this.problem(key, UNKNOWN, NO_SUCH_KEY, known);
    return values;
  }
}

function joined(path: string, key: string): string {
  return path === '' || key === '' ? path + key : `${path}.${key}`;
}

function isTable(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** One thing wrong with a config file, in words an operator can act on. */
export type Problem = Readonly<{ key: string; found: string; expected: string; example: string }>;

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
