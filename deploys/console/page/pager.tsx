/** @jsxImportSource preact */
import { Link } from './link.tsx';

/** The pages before and after, by cursor; a side without one is not shown. */
export function Pager({
  newer,
  older,
}: Readonly<{ newer?: string | undefined; older?: string | undefined }>) {
  if (newer === undefined && older === undefined) return null;
  return (
    <nav class="pager" aria-label="Pages">
      {newer === undefined ? (
        <span />
      ) : (
        <Link to={newer} class="button">
          ← Newer
        </Link>
      )}
      {older !== undefined && (
        <Link to={older} class="button">
          Older →
        </Link>
      )}
    </nav>
  );
}

/** The same address with some of its query changed; `undefined` takes a member away. */
export function withQuery(url: URL, changes: Readonly<Record<string, string | undefined>>): string {
  const query = new URLSearchParams(url.searchParams);
  query.delete('done');
  query.delete('shown');
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined) query.delete(name);
    else query.set(name, value);
  }
  return query.size === 0 ? url.pathname : `${url.pathname}?${query}`;
}
