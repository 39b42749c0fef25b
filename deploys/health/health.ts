import { statSync } from 'node:fs';
import { basename } from 'node:path';
import { descriptorsMax, descriptorTrouble, fileReason } from '../../shared/store/private.ts';
import { type Store, watchFile } from '../../shared/store/open.ts';

/** `hasRemark`: it is well, and there is something to tell all the same. */
export type Health = Readonly<{ isWell: boolean; sentence: string; hasRemark?: true }>;

/** Two parts' health as one: well if both are; the second is told only when it is not, or has a remark. */
export function bothHealths(first: Health, second: Health | undefined): Health {
  if (second === undefined || (second.isWell && second.hasRemark === undefined)) return first;
  return { isWell: first.isWell && second.isWell, sentence: `${first.sentence} ${second.sentence}` };
}

/** Watches whether the databases are in their places and can be read, and whether descriptors are left. */
export function createStoresHealth(stores: readonly Store[]): () => Health {
  const max = descriptorsMax();
  const watched = stores.map((store) => ({
    name: basename(store.filename),
    changeOf: watchFile(store),
    read: store.prepare('SELECT 1 FROM migrations LIMIT 1'),
  }));

  function complaint(): string | undefined {
    for (const { name, changeOf, read } of watched) {
      const change = changeOf();
      if (change !== undefined) return `The database ${change.what}; ${change.cause}.`;
      try {
        read.get();
      } catch (error) {
        return `The database ${name} cannot be read (${fileReason(error)}).`;
      }
    }
    const descriptors = descriptorTrouble(max);
    return descriptors?.stops ? `For this process ${descriptors.what} (${descriptors.cause}).` : undefined;
  }

  return () => {
    const sentence = complaint();
    return { isWell: sentence === undefined, sentence: sentence ?? 'ok' };
  };
}

/** The files of a database on disk, in bytes; the log (WAL) holds what is not yet in the file. */
export type StoreSize = Readonly<{ name: string; bytes: number; walBytes: number }>;

/** How much the database at `path` takes on disk; a file that is not there takes nothing. Never throws. */
export function storeSize(name: string, path: string): StoreSize {
  return { name, bytes: bytesOf(path), walBytes: bytesOf(`${path}-wal`) };
}

function bytesOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
