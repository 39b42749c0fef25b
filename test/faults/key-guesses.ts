import { randomBytes } from 'node:crypto';
import { makeApiKey } from '../../shared/keys/api-key.ts';
import type { Store } from '../../shared/store/open.ts';
import { openCaller, postText } from '../fakes/raw-caller.ts';
import { CALL } from '../started/crew.ts';

/** A key that nobody has; its shape and its check digits are right. */
export const guess = (): string => makeApiKey((bytes) => randomBytes(bytes));

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** Another key, with right check digits, that begins like `key` for `alike` of its 32 characters. */
export function guessLike(key: string, alike: number): string {
  const same = key.slice('sluice_'.length, 'sluice_'.length + alike);
  // A byte below 62 becomes the character at its place.
  return makeApiKey((bytes) =>
    Uint8Array.from({ length: bytes }, (_, i) => {
      const letter = same[i];
      return letter === undefined ? (randomBytes(1)[0] ?? 0) % 62 : BASE62.indexOf(letter);
    }),
  );
}

/** Asks one after another on one connection from `address`, each with its key and its further header lines; gives the statuses. */
export async function askFrom(
  url: URL,
  address: string,
  asks: readonly Readonly<{ key: string; head?: string }>[],
): Promise<readonly number[]> {
  using caller = await openCaller(url, address);
  const statuses: number[] = [];
  for (const { key, head } of asks) {
    caller.send(postText(CALL, key, head));
    const text = await caller.until('"jsonrpc"', statuses.length + 1);
    statuses.push(Number([...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].at(-1)?.[1]));
  }
  return statuses;
}

/** `times` guesses from `address`. */
export const guessFrom = (url: URL, address: string, times: number) =>
  askFrom(
    url,
    address,
    Array.from({ length: times }, () => ({ key: guess() })),
  );

/** The accounts as they are, and how often a key was looked up in them. */
export function countingLookUps(): { through: (accounts: Store) => Store; count: () => number } {
  let count = 0;
  const through = (accounts: Store): Store =>
    new Proxy(accounts, {
      get(store, name) {
        const value: unknown = Reflect.get(store, name, store);
        if (typeof value !== 'function') return value;
        if (name !== 'prepare') return value.bind(store);
        return (sql: string) => (sql.includes('hash = ?') ? counted(store.prepare(sql)) : store.prepare(sql));
      },
    });
  const counted = (statement: ReturnType<Store['prepare']>) =>
    new Proxy(statement, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name, target);
        if (name === 'get') count++;
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  return { through, count: () => count };
}
