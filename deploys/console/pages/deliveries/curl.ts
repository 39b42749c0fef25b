import type { AttemptRow } from '../../../outbox/list.ts';

/** One line of headers. */
export type HeaderLine = readonly [name: string, value: string];

/** The headers of the event as an attempt sent them, behind those that say what the body is; none before it was made. */
export function sentHeaders({ requestHeadersJson }: AttemptRow): readonly HeaderLine[] {
  if (requestHeadersJson === null) return [];
  const headers = JSON.parse(requestHeadersJson) as Record<string, string>; // as `finish` wrote it
  return [['Content-Type', 'application/json'], ...Object.entries(headers)];
}

/** The same request for a shell: its signature fits this body, and is old after five minutes. */
export function curlOf(attempt: AttemptRow, body: Uint8Array): string {
  const headers = sentHeaders(attempt).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`);
  return [
    `curl -X POST ${quoted(attempt.url)}`,
    ...headers,
    `--data-binary ${quoted(Buffer.from(body).toString('utf8'))}`,
  ].join(' \\\n  ');
}

/** One word to every shell of the Bourne family, whatever is in it. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
