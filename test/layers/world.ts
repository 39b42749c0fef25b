import { type Breach, codeOf, isMain, type Source } from './source.ts';

const ENVIRONMENT = /\b(?:process|Bun|import\.meta)\s*\.\s*env\b/;
const TIME = /\bDate\s*\.\s*now\b|\bset(?:Timeout|Interval)\b|\bnew Date\(\)|\bperformance\s*\.\s*now\b/;
/** Randomness comes in as an argument, `random(bytes)`; only a `main.ts` names the machine's source of it. */
const RANDOM = /\bMath\s*\.\s*random\b|\brandomUUID(?:v7)?\b|\brandomBytes\b|\bgetRandomValues\b/;

/** Files that read the environment and are not a `main.ts`. */
export function readEnvironment(sources: readonly Source[]): readonly Breach[] {
  return matching(sources, ENVIRONMENT, isMain, 'reads the environment');
}

/** Files that take the time from the machine and not from a `Clock`. */
export function readTime(sources: readonly Source[]): readonly Breach[] {
  return matching(sources, TIME, (path) => isMain(path) || path === 'shared/clock.ts', 'reads the clock');
}

/** Files that make randomness by themselves. */
export function makeRandom(sources: readonly Source[]): readonly Breach[] {
  return matching(sources, RANDOM, (path) => isMain(path) || path === 'shared/clock.ts', 'makes randomness');
}

function matching(
  sources: readonly Source[],
  pattern: RegExp,
  mayDo: (path: string) => boolean,
  what: string,
): readonly Breach[] {
  return sources.flatMap((source) => {
    if (mayDo(source.path)) return [];
    const found = pattern.exec(codeOf(source));
    return found === null ? [] : [`${source.path} ${what}: ${found[0]}`];
  });
}
