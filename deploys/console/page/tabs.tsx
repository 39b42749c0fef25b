/** @jsxImportSource preact */
import { Link } from './link.tsx';

/** One of several views of the same thing, each with its own address. */
export type Tab = Readonly<{ label: string; to: string; isCurrent: boolean }>;

/** Links between views; not an ARIA tab list, because each is a page. */
export function Tabs({ label, tabs }: Readonly<{ label: string; tabs: readonly Tab[] }>) {
  return (
    <nav class="tabs" aria-label={label}>
      <ul>
        {tabs.map((tab) => (
          <li key={tab.to}>
            <Link to={tab.to} isCurrent={tab.isCurrent}>
              {tab.label}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  );
}
