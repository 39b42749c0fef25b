const ESCAPES: Readonly<Record<string, string>> = {
  '\\': '\\\\',
  '"': '\\"',
  "'": "\\'",
  '\t': '\\t',
  '\n': '\\n',
  '\r': '\\r',
  '\0': '\\0',
};

/** Text as Rust prints it for debugging (`{:?}`): a string within double quotes, one character within single ones. */
export function debugText(text: string, quote: '"' | "'" = '"'): string {
  const escaped = text.replaceAll(/["'\\\p{C}\p{Z}]/gu, (character) => {
    const isPlain = character === ' ' || (/["']/.test(character) && character !== quote);
    if (isPlain) return character;
    return ESCAPES[character] ?? `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
  });
  return quote + escaped + quote;
}
