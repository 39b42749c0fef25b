import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../../../started/process.ts';

/** The page for receivers. */
export const PAGE = readFileSync(join(ROOT, 'docs/webhooks.md'), 'utf8');

/** The code that the page marks with `<!-- runs: name -->`. */
export function snippet(name: string): string {
  const [, code] =
    new RegExp(`<!-- runs: ${RegExp.escape(name)} -->\\s+\`\`\`[a-z]+\\n([\\s\\S]*?)\`\`\``).exec(PAGE) ?? [];
  if (code === undefined) throw new Error(`docs/webhooks.md has no snippet ${name}`);
  return code;
}

/** A TypeScript snippet of the page as JavaScript, for a Node that reads no types. */
export function javascript(name: string): string {
  const code = new Bun.Transpiler({ loader: 'ts', target: 'node' }).transformSync(snippet(name));
  return code.replaceAll(/(['"])(\.\/[a-z]+)\.ts\1/g, '$1$2.mjs$1');
}
