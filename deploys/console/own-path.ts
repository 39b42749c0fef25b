/** No browser takes these in a path for what they look like: a backslash becomes a slash, a tab or newline vanishes. */
// oxlint-disable-next-line no-control-regex -- control characters are what is looked for
const MISLEADING = /[\\\u0000-\u0020\u007f]/;

/** `text` when it is a path on this origin, with its query; never another host, a scheme or a relative path. */
export function ownPath(text: string | null | undefined): string | undefined {
  if (!text?.startsWith('/') || text.startsWith('//') || MISLEADING.test(text)) return undefined;
  return text;
}
