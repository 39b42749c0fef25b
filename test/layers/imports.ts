import { posix } from 'node:path';
import { type Breach, codeOf, type Source, topOf } from './source.ts';

/** Which top folders each top folder may import. `cli`, `test` and `bench` may import all of them. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  shared: ['shared'],
  gateway: ['gateway', 'shared'],
  deploys: ['deploys', 'shared'],
  localnet: ['localnet', 'shared'],
};

/**
 * What a file imports of the project, as paths from the root; type-only imports count. The text is read, because
 * `Bun.Transpiler.scanImports` leaves those out.
 */
export function importsOf(source: Source): readonly string[] {
  const found = codeOf(source).matchAll(/(?:\bfrom|\bimport)\s*\(?\s*['"](\.[^'"]*)['"]/g);
  return [...found].map(([, target]) => posix.join(posix.dirname(source.path), target ?? ''));
}

/** Imports across folders that the table above does not allow. */
export function crossings(sources: readonly Source[]): readonly Breach[] {
  return sources.flatMap((source) => {
    const allowed = MAY_IMPORT[topOf(source.path)];
    if (allowed === undefined) return [];
    const wrong = importsOf(source).filter(
      (target) => target.includes('/') && !allowed.includes(topOf(target)),
    );
    return wrong.map((target) => `${source.path} imports ${target}`);
  });
}

/** Imports between benches and tests, but for what both start (`test/started`) and the tests of benches. */
export function benchCrossings(sources: readonly Source[]): readonly Breach[] {
  return sources.flatMap((source) => {
    const isWrong = (target: string) =>
      topOf(source.path) === 'bench'
        ? target.startsWith('test/') && !target.startsWith('test/started/')
        : topOf(source.path) === 'test' &&
          !source.path.startsWith('test/bench/') &&
          target.startsWith('bench/');
    return importsOf(source)
      .filter(isWrong)
      .map((target) => `${source.path} imports ${target}`);
  });
}

/** Files that only pass on what others export. */
export function barrels(sources: readonly Source[]): readonly Breach[] {
  return sources.flatMap((source) => {
    const code = codeOf(source).trim();
    if (code === '') return [];
    const rest = code.replace(
      /export\s+(?:type\s+)?(?:\*(?:\s+as\s+\w+)?|\{[^}]*\})\s*from\s*['"][^'"]+['"];?/g,
      '',
    );
    return rest.trim() === '' ? [`${source.path} only re-exports`] : [];
  });
}

/** Files of shared that fewer than two top folders use, through other files of shared or at once. Tests do not count. */
export function lonely(sources: readonly Source[]): readonly Breach[] {
  const users = new Map<string, Set<string>>();
  const imports = new Map(sources.map((source) => [source.path, importsOf(source)]));
  for (const { path } of sources) {
    if (topOf(path) !== 'shared') reach(path, topOf(path));
  }
  function reach(path: string, user: string) {
    for (const target of imports.get(path) ?? []) {
      if (!target.startsWith('shared/')) continue;
      const seen = users.get(target) ?? new Set();
      users.set(target, seen);
      if (seen.has(user)) continue;
      seen.add(user);
      reach(target, user);
    }
  }
  return sources
    .filter(({ path }) => path.startsWith('shared/') && (users.get(path)?.size ?? 0) < 2)
    .map(({ path }) => `${path} is used by ${[...(users.get(path) ?? ['nobody'])].join()} alone`);
}
