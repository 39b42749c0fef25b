/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact';
import { ownPath } from '../own-path.ts';
import { Link } from './link.tsx';

type FiltersProps = Readonly<{
  /** The list's own path, without a query. */
  path: string;
  /** Something is filtered, so there is something to clear. */
  isFiltered: boolean;
  children: ComponentChildren;
}>;

/** A form that narrows a list by its address, so that a filtered list can be linked and kept. */
export function Filters({ path, isFiltered, children }: FiltersProps) {
  return (
    <form method="get" action={ownPath(path)} class="filters" role="search" aria-label="Filter">
      {children}
      <div class="filters-buttons">
        <button type="submit" class="button">
          Filter
        </button>
        {isFiltered && <Link to={path}>Clear</Link>}
      </div>
    </form>
  );
}
