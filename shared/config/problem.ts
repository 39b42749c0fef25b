/** One thing wrong with a config file, in words an operator can act on. */
export type Problem = Readonly<{ key: string; found: string; wanted: string; example: string }>;

/** The problem as one line: key, what was found, what is wanted, an example. */
export function problemLine({ key, found, wanted, example }: Problem): string {
  return `${key}: found ${found}, wanted ${wanted} (for example ${example})`;
}

/** A found value, short and on one line. Never called with a value that came from the environment. */
export function shown(value: unknown): string {
  if (value === undefined) return 'nothing';
  const text = typeof value === 'string' ? JSON.stringify(value) : (JSON.stringify(value) ?? String(value));
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}
