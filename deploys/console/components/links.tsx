/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact';
import { useContext } from 'preact/hooks';
import { ownPath } from '../paths.ts';
import { Here } from './here.ts';

type LinkProps = Readonly<{
  /** A path of the console, with its query. Anything else, such as `javascript:`, is shown as text without a link. */
  to: string;
  class?: string | undefined;
  label?: string | undefined;
  isCurrent?: boolean | undefined;
  /** It opens in the drawer at the side; without JavaScript, and in a new tab, it is the full page. */
  isDrawer?: boolean | undefined;
  children: ComponentChildren;
}>;

/** A link inside the console. */
export function Link({ to, class: name, label, isCurrent, isDrawer, children }: LinkProps) {
  const href = ownPath(to);
  if (href === undefined) return <span class={name}>{children}</span>;
  return (
    <a
      href={href}
      class={name}
      aria-label={label}
      aria-current={isCurrent ? 'page' : undefined}
      data-drawer={isDrawer}
    >
      {children}
    </a>
  );
}

/** One step of the way to a page. */
export type Crumb = readonly [label: string, to: string];

/** The way to a page; the page itself, `here`, is its last step and no link. */
export function Crumbs({ crumbs, here }: Readonly<{ crumbs: readonly Crumb[]; here: string }>) {
  return (
    <nav class="crumbs" aria-label="Breadcrumb">
      <ol>
        {crumbs.map(([label, to]) => (
          <li>
            <Link to={to}>{label}</Link>
          </li>
        ))}
        <li aria-current="page">{here}</li>
      </ol>
    </nav>
  );
}

type TabsProps = Readonly<{
  label: string;
  /** Views of the same thing, each with its own address. */
  tabs: readonly (readonly [label: string, to: string, isCurrent: boolean])[];
}>;

/** Links between views; not an ARIA tab list, because each is a page. */
export function Tabs({ label, tabs }: TabsProps) {
  return (
    <nav class="tabs" aria-label={label}>
      <ul>
        {tabs.map(([text, to, isCurrent]) => (
          <li>
            <Link to={to} isCurrent={isCurrent}>
              {text}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  );
}

/** A few views of one panel, side by side. */
export function Choices({ label, tabs }: TabsProps) {
  return (
    <nav class="choices" aria-label={label}>
      {tabs.map(([text, to, isCurrent]) => (
        <Link to={to} isCurrent={isCurrent}>
          {text}
        </Link>
      ))}
    </nav>
  );
}

/** Tabs or choices that differ in one member of the query, `by`; the value '' stands for its absence. */
export function views(
  url: URL,
  by: string,
  options: readonly (readonly [value: string, label: string, ...unknown[]])[],
  chosen: string,
  anchor = '',
): TabsProps['tabs'] {
  return options.map(([value, label]) => [
    label,
    `${withQuery(url, { [by]: value || undefined })}${anchor}`,
    value === chosen,
  ]);
}

type PagerProps = Readonly<{
  /** The query parameter that holds the cursor. */
  by: string;
  /** Where the next page begins; `undefined`: there is none. */
  next: string | number | undefined;
}>;

/** The way to the first page and to the next; a side that leads nowhere is not shown. */
export function Pager({ by, next }: PagerProps) {
  const { url } = useContext(Here);
  const isFirst = !url.searchParams.has(by);
  if (isFirst && next === undefined) return null;
  return (
    <nav class="pager" aria-label="Pages">
      {isFirst ? (
        <span />
      ) : (
        <Link to={withQuery(url, { [by]: undefined })} class="button">
          ← First page
        </Link>
      )}
      {next !== undefined && (
        <Link to={withQuery(url, { [by]: String(next) })} class="button">
          Older →
        </Link>
      )}
    </nav>
  );
}

/** The same address with some of its query changed, `undefined` takes a member away, and without what is shown once. */
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

/** A place in a list, by an instant and an id. */
type Cursor = Readonly<{ atMs: number; id: string }>;

/** `1795298709000.k_ab12`; anything else is the beginning of the list. */
export function cursorFrom(text: string | null): Cursor | undefined {
  const [, atMs, id] = /^(\d{1,15})\.([\w-]{1,64})$/.exec(text ?? '') ?? [];
  return atMs === undefined || id === undefined ? undefined : { atMs: Number(atMs), id };
}
