import type { Breach } from './source.ts';

const FORBIDDEN = new Set(
  'util utils helper helpers common type types manager managers service services misc lib'.split(' '),
);

/** Paths with a folder or file whose name says nothing about what is inside. */
export function emptyNames(paths: readonly string[]): readonly Breach[] {
  return paths.filter((path) => path.split('/').some((part) => FORBIDDEN.has(part.replace(/\..*$/, ''))));
}

/** Paths that are not kebab-case. */
export function oddNames(paths: readonly string[]): readonly Breach[] {
  return paths.filter((path) => path.split('/').some((part) => !/^[a-z0-9]+(?:[.-][a-z0-9]+)*$/.test(part)));
}
