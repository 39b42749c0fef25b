import { endpointsFrom } from '../redis/options.ts';
import { Secret, userinfoOf } from '../secret.ts';
import type { Kind } from './table.ts';

export type Listen = Readonly<{ hostname: string; port: number }>;

/** A whole number within bounds, both included; digits in a string count, for values from the environment. */
export function integer(min: number, max: number, example: string): Kind<number> {
  return {
    expected: `a whole number from ${min} to ${max}`,
    example,
    read: (value) => {
      const number = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
      return typeof number === 'number' && Number.isSafeInteger(number) && number >= min && number <= max
        ? number
        : undefined;
    },
  };
}

export function positive(max: number, example: string): Kind<number> {
  return {
    expected: `a number above 0, at most ${max}`,
    example,
    read: (value) => {
      const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
      return typeof number === 'number' && number > 0 && number <= max ? number : undefined;
    },
  };
}

export const flag: Kind<boolean> = {
  expected: 'true or false',
  example: 'true',
  read: (value) => (typeof value === 'boolean' ? value : undefined),
};

export function written<T>(expected: string, example: string, read: (text: string) => T | undefined) {
  const readText = (value: unknown) => (typeof value === 'string' ? read(value) : undefined);
  return { expected, example, read: readText };
}

export function text(example: string): Kind<string> {
  return written('a non-empty string', example, (value) => value || undefined);
}

/** The name of an HTTP header; read in lower case. */
export const headerName = written('the name of an HTTP header', '"x-forwarded-for"', (name) =>
  /^[A-Za-z0-9-]+$/.test(name) ? name.toLowerCase() : undefined,
);

/** A text that must not be shown; better taken from the environment than written in the file. */
function hidden(expected: string, example: string, isGood: (text: string) => boolean): Kind<Secret> {
  const read = (value: string) => (isGood(value) ? new Secret(value) : undefined);
  return { ...written(expected, example, read), hidden: true };
}

export function secret(example: string): Kind<Secret> {
  return hidden('a non-empty string (secret)', example, (value) => value !== '');
}

export const redisUrl = hidden(
  'redis://host:port or rediss://host:port; further nodes of a cluster after commas',
  '"redis://127.0.0.1:6379"',
  (value) => endpointsFrom(value) !== undefined,
);

export const sealingKey = hidden(
  '32 bytes in base64',
  '"env:SLUICE_SECRET" with the output of: openssl rand -base64 32',
  (value) => /^[A-Za-z0-9+/]{43}=$/.test(value),
);

/** `host:port`; an IPv6 host stands in brackets; port 0 asks for any free port. */
export const listen: Kind<Listen> = written('host:port', '"127.0.0.1:8899"', (value) => {
  const [, hostname, digits] = /^(\[[0-9a-fA-F:.]+\]|[^:\s]+):(\d{1,5})$/.exec(value) ?? [];
  const port = Number(digits);
  if (hostname === undefined || port > 65_535) return undefined;
  return { hostname: hostname.replace(/^\[|\]$/g, ''), port };
});

/** An http or https address without a fragment, whose user and password can be decoded. */
export function httpUrl(example: string): Kind<URL> {
  // Hidden, because providers put keys into addresses.
  return {
    expected: 'an http:// or https:// URL without #, and with %25 for a % in a password',
    example,
    hidden: true,
    read: (value) => readHttpUrl(value),
  };
}

function readHttpUrl(value: unknown): URL | undefined {
  if (typeof value !== 'string' || !URL.canParse(value)) return undefined;
  const url = new URL(value);
  const isWeb = url.protocol === 'http:' || url.protocol === 'https:';
  return isWeb && url.hash === '' && userinfoOf(url) !== undefined ? url : undefined;
}

export const httpUrls: Kind<readonly URL[]> = {
  expected: 'a list of http:// or https:// URLs',
  example: '["http://127.0.0.1:8899"]',
  hidden: true,
  read: (value) => {
    if (!Array.isArray(value) || value.length === 0) return undefined;
    const urls = value.map(readHttpUrl);
    return urls.every((url) => url !== undefined) ? urls : undefined;
  },
};

export type Coding = 'zstd' | 'gzip';

const CODINGS: Readonly<Record<string, readonly Coding[]>> = {
  off: [],
  zstd: ['zstd'],
  'zstd,gzip': ['zstd', 'gzip'],
};

export const codings = written('"off", "zstd" or "zstd,gzip"', '"zstd"', (value) =>
  Object.hasOwn(CODINGS, value) ? CODINGS[value] : undefined,
);

export function oneOf<Name extends string>(choices: readonly Name[], example: string): Kind<Name> {
  return {
    expected: `one of ${choices.join(', ')}`,
    example,
    read: (value) => choices.find((choice) => choice === value),
  };
}

/** A list of names, none twice. `of` bounds what a name may be. */
export function names<Name extends string>(
  of: (name: string) => name is Name,
  expected: string,
  example: string,
): Kind<readonly Name[]> {
  return {
    expected,
    example,
    read: (value) => {
      if (!Array.isArray(value) || new Set(value).size !== value.length) return undefined;
      return value.every((name): name is Name => typeof name === 'string' && of(name)) ? value : undefined;
    },
  };
}
