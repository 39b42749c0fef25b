/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact';
import { ownPath } from '../own-path.ts';

type LiveProps = Readonly<{
  /** Unique on the page, and the same each time the page is made. */
  id: string;
  /** The page's own address with its query. The whole page is asked for and this part taken from it. */
  from: string;
  everySeconds?: number | undefined;
  children: ComponentChildren;
}>;

/** A part of a page that keeps itself up to date. It waits while the page is hidden or the part is in use. */
export function Live({ id, from, everySeconds = 5, children }: LiveProps) {
  return (
    <div
      id={id}
      data-live
      hx-get={ownPath(from)}
      hx-trigger={`every ${everySeconds}s`}
      hx-select={`#${id}`}
      hx-swap="outerHTML"
    >
      {children}
    </div>
  );
}
