const REDACTED = '[secret]';

/** A value that logs, JSON and template strings show as `[secret]`. A class, because no serialiser reaches its private slot. */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return REDACTED;
  }

  toJSON(): string {
    return REDACTED;
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return REDACTED;
  }
}

/** The decoded user and password of an address, empty where it has none; `undefined` when a `%` in them begins no escape. */
export function userinfoOf({ username, password }: Pick<URL, 'username' | 'password'>) {
  try {
    return { username: decodeURIComponent(username), password: decodeURIComponent(password) };
  } catch {
    return undefined;
  }
}
