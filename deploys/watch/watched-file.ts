import { readFileSync } from 'node:fs';
import builtIn from './programs.json';
import { type Watched, watchedFrom } from './watched.ts';

/** The programs to watch: those of the JSON file at `path`, else the built-in list. Never throws for a bad file. */
export function readWatched(path: string | undefined): Watched {
  if (path === undefined) return watchedFrom(builtIn);
  try {
    const watched = watchedFrom(JSON.parse(readFileSync(path, 'utf8')));
    if (watched.kind === 'watched') return watched;
    return { kind: 'problems', lines: watched.lines.map((line) => `${path}: ${line}`) };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { kind: 'problems', lines: [`The list of programs ${path} cannot be read (${reason}).`] };
  }
}
