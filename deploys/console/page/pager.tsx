/** @jsxImportSource preact */
import { Link } from './link.tsx';

/** The way to the first page and to the next, by cursor; a side without one is not shown. */
export function Pager({
  first,
  older,
}: Readonly<{ first?: string | undefined; older?: string | undefined }>) {
  if (first === undefined && older === undefined) return null;
  return (
    <nav class="pager" aria-label="Pages">
      {first === undefined ? (
        <span />
      ) : (
        <Link to={first} class="button">
          ← First page
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
