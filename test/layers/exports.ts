import { posix } from 'node:path';
import { type Breach, codeOf, type Source } from './source.ts';

const EXPORTED =
  /^export (?:declare )?(?:async )?(?:abstract )?(?:function\*?|const|let|class|type|interface|enum) (\w+)/gm;
/** `import a, { b } from`, `export { b } from` and `const { b } = await import(`; the names, and the path. */
const NAMED =
  /(?:(?:import|export)\s+(?:type\s+)?(?:\w+\s*,\s*)?|(?:const|let)\s+)(\{[^}]*\})(?:\s*from\s*|\s*=\s*await\s+import\s*\(\s*)['"](\.[^'"]*)['"]/g;
/** `import * as a from`, `import(…)` without names, and `typeof import(…)`: any of the names. */
const WHOLE =
  /(?:import\s*\*\s*as\s+\w+\s+from\s*|export\s*\*\s*from\s*|\bimport\s*\(\s*)['"](\.[^'"]*)['"]/g;

/** Exports of `sources` that no other file of `users` imports. */
export function unusedExports(sources: readonly Source[], users: readonly Source[]): readonly Breach[] {
  const used = new Set(users.flatMap(importedBy));
  return sources.flatMap((source) =>
    [...codeOf(source).matchAll(EXPORTED)]
      .filter(([, name]) => !used.has(`${source.path} ${name}`) && !used.has(`${source.path} *`))
      .map(([, name]) => `${source.path} exports ${name}, which no other file imports`),
  );
}

/** `PATH NAME` of what a file imports, `PATH *` where the names are unknown. */
function importedBy(source: Source): readonly string[] {
  const code = codeOf(source);
  const at = (path = '') => posix.join(posix.dirname(source.path), path);
  const named = [...code.matchAll(NAMED)].flatMap(([, names = '', path]) =>
    [...names.matchAll(/(?:^|[{,])\s*(?:type\s+)?(\w+)/g)].map(([, name]) => `${at(path)} ${name}`),
  );
  const whole = [...code.replace(NAMED, '').matchAll(WHOLE)].map(([, path]) => `${at(path)} *`);
  return [...named, ...whole];
}
