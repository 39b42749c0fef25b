/**
 * A backslash becomes a slash in a browser, a tab or newline vanishes, and beyond ASCII a header carries no text: whoever
 * means such a character writes it as `%…`.
 */
const MISLEADING = /[^!-~]|\\/;

/** `text` when it is a path on this origin, with its query, in printable ASCII; never another host, a scheme or a relative path. */
export function ownPath(text: string | null | undefined): string | undefined {
  if (!text?.startsWith('/') || text.startsWith('//') || MISLEADING.test(text)) return undefined;
  return text;
}
