import { closeSync, fstatSync, openSync, renameSync, writeSync } from 'node:fs';
import { keepPrivate } from '../../shared/store/private.ts';

/** An append-only file of bounded size. `append` never throws: a full disk must not stop the apps. */
export type LogFile = Readonly<{ append(bytes: Uint8Array): void; close(): void }>;

/** One file and one old file of this size each, in bytes. */
export const LOG_BYTES_MAX = 10 * 1_048_576;

/** Opens or makes the log at `path`; when it would grow above `bytesMax` it becomes `path.1` and a new one begins. */
export function openLogFile(path: string, bytesMax: number = LOG_BYTES_MAX): LogFile {
  keepPrivate(path);
  let file = openSync(path, 'a', 0o600);
  let size = fstatSync(file).size;

  function append(bytes: Uint8Array) {
    try {
      if (size > 0 && size + bytes.length > bytesMax) begin();
      size += writeSync(file, bytes);
    } catch {
      // What cannot be logged is lost; the apps go on.
    }
  }

  function begin() {
    renameSync(path, `${path}.1`);
    closeSync(file);
    file = openSync(path, 'a', 0o600);
    size = 0;
  }

  return { append, close: () => closeSync(file) };
}
