import { type Breach, codeOf, type Source } from './source.ts';

/** What the console's policy forbids, or what would get past the escaping of text. */
const UNSAFE = /\s(?:style|on[A-Z]\w*|srcDoc)=|dangerouslySetInnerHTML|<(?:style|iframe|object|embed)\b/;

/** Pages that carry a style, a handler, raw HTML or a frame. */
export function unsafeMarkup(sources: readonly Source[]): readonly Breach[] {
  return sources.flatMap((source) => {
    if (!source.path.endsWith('.tsx')) return [];
    const found = UNSAFE.exec(codeOf(source));
    return found === null ? [] : [`${source.path} has ${found[0].trim()}`];
  });
}

/** Pages that leave it to `tsconfig.json` what their markup is: Bun reads that of the folder it is started in alone. */
export function unnamedMarkup(sources: readonly Source[]): readonly Breach[] {
  return sources
    .filter(({ path, text }) => path.endsWith('.tsx') && !text.startsWith('/** @jsxImportSource preact */\n'))
    .map(({ path }) => `${path} does not begin with its jsxImportSource`);
}
