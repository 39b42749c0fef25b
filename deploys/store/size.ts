import { statSync } from 'node:fs';

/** The files of a database on disk, in bytes; the log (WAL) holds what is not yet in the file. */
export type StoreSize = Readonly<{ name: string; bytes: number; walBytes: number }>;

/** How much the database at `path` takes on disk; a file that is not there takes nothing. Never throws. */
export function storeSize(name: string, path: string): StoreSize {
  return { name, bytes: bytesOf(path), walBytes: bytesOf(`${path}-wal`) };
}

function bytesOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
