/** @jsxImportSource preact */
import { Link } from './link.tsx';

/** One step of the way to a page. */
export type Crumb = Readonly<{ label: string; to: string }>;

/** The way to a page; the page itself, `here`, is its last step and no link. */
export function Crumbs({ crumbs, here }: Readonly<{ crumbs: readonly Crumb[]; here: string }>) {
  return (
    <nav class="crumbs" aria-label="Breadcrumb">
      <ol>
        {crumbs.map(({ label, to }) => (
          <li key={to}>
            <Link to={to}>{label}</Link>
          </li>
        ))}
        <li aria-current="page">{here}</li>
      </ol>
    </nav>
  );
}
