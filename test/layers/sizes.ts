import { importsOf } from './imports.ts';
import type { Breach, Source } from './source.ts';

/** Lines that a file may have. */
export const LINES_MAX = 500;
/** A file below so many lines belongs into the one file that imports it; so many may stand alone all the same. */
const CRUMB_LINES = 40;
export const CRUMBS_MAX = 5;
/** Lines that a function may have. */
const FUNCTION_LINES_MAX = 70;

/** Files that are tables, row after row, and may be as long as what they list. */
export const TABLES: readonly string[] = [];

/** Files above the bound, tables apart. */
export function tooLong(sources: readonly Source[], tables: readonly string[] = TABLES): readonly Breach[] {
  return sources
    .filter((source) => linesOf(source) > LINES_MAX && !tables.includes(source.path))
    .map((source) => `${source.path} has ${linesOf(source)} lines`);
}

/** Files of few lines that one other file imports; tests do not count. */
export function crumbs(sources: readonly Source[], users: readonly Source[]): readonly Breach[] {
  const importers = new Map<string, Set<string>>();
  for (const user of users)
    for (const target of importsOf(user))
      importers.set(target, (importers.get(target) ?? new Set()).add(user.path));
  return sources
    .filter((source) => linesOf(source) < CRUMB_LINES && importers.get(source.path)?.size === 1)
    .map(({ path }) => `${path} belongs into ${[...(importers.get(path) ?? [])].join()}`);
}

/**
 * Functions above the bound, each without the functions inside it, so that a factory counts as its parts. They are
 * found by their indentation, which the formatter makes reliable.
 */
export function longFunctions(sources: readonly Source[]): readonly Breach[] {
  return sources.flatMap(({ path, text }) => {
    const spans = spansOf(text.split('\n'));
    return spans.flatMap(({ name, from, to }) => {
      const inside = spans.filter((other) => other.from > from && other.to <= to);
      const lines = Array.from({ length: to - from + 1 }, (_, i) => from + i);
      const own = lines.filter((line) => !inside.some((other) => line >= other.from && line <= other.to));
      return own.length > FUNCTION_LINES_MAX ? [`${path}: ${name} has ${own.length} lines`] : [];
    });
  });
}

type Span = Readonly<{ name: string; from: number; to: number }>;

function spansOf(lines: readonly string[]): readonly Span[] {
  return lines.flatMap((line, from) => {
    const [, indent, name] =
      /^( *)(?:export )?(?:default )?(?:async )?function\*? ?(\w+)/.exec(line) ??
      /^( *)(?:export )?const (\w+).*=> \{$/.exec(line) ??
      [];
    if (indent === undefined || name === undefined) return [];
    const to = lines.findIndex(
      (other, i) => i > from && /^\}[;)]*$/.test(other.slice(indent.length)) && other.startsWith(indent),
    );
    return to === -1 ? [] : [{ name, from, to }];
  });
}

function linesOf({ text }: Source): number {
  return text.split('\n').length - (text.endsWith('\n') ? 1 : 0);
}
