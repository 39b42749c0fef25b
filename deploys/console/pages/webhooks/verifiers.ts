import { readFileSync } from 'node:fs';

/** A way to verify what arrives, in one language. */
export type Verifier = Readonly<{ language: string; code: string }>;

const PAGE = '../../../../docs/webhooks.md';
/** A heading without what stands in brackets, and the first code below it. */
const SECTION = /^### (.+?)(?: \(.*\))?\n(?:(?!###|```).*\n)*```\w+\n([\s\S]*?)```/gm;

/** The verifiers of the page for receivers, whose code runs in the tests. */
export function readVerifiers(): readonly Verifier[] {
  const text = readFileSync(new URL(PAGE, import.meta.url), 'utf8');
  const part = text.slice(text.indexOf('\n## Verifiers'));
  return [...part.matchAll(SECTION)].map(([, language = '', code = '']) => ({
    language,
    code: code.trimEnd(),
  }));
}
