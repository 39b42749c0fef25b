import { type Breach, type Source, topOf } from './source.ts';

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

/** Types of one name in an app: a reader who knows the one misreads the other. */
export function typesOfOneName(sources: readonly Source[]): readonly Breach[] {
  const places = new Map<string, string[]>();
  for (const { path, text } of sources)
    for (const [, name] of text.matchAll(/^(?:export )?(?:type|interface|class) (\w+)/gm)) {
      const each = `${topOf(path)} ${name}`;
      places.set(each, [...(places.get(each) ?? []), path]);
    }
  return [...places]
    .filter(([, paths]) => paths.length > 1)
    .map(([each, paths]) => `${each}: ${paths.join()}`);
}

/** Docstrings that name a thing by a question in place of saying what it is or does. */
export function whatDocstrings(sources: readonly Source[]): readonly Breach[] {
  return sources.flatMap(({ path, text }) =>
    [...text.matchAll(/^ *(?:\/\*\*|\/\*\*\n *\*) What [^\n]{0,60}/gm)].map(
      ([found]) => `${path}: ${found.trim()}`,
    ),
  );
}
