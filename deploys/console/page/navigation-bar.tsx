/** @jsxImportSource preact */
import type { PageAccount } from '../asked.ts';
import type { Viewer } from '../viewer.ts';
import { Icon } from './icon.tsx';
import { Link } from './link.tsx';
import { isWithin, navigationOf } from './navigation.ts';

type NavigationProps = Readonly<{ viewer: Viewer; account: PageAccount | undefined; path: string }>;

/** The console's navigation: a column at the side, a strip on phones. */
export function NavigationBar({ viewer, account, path }: NavigationProps) {
  return (
    <nav class="navigation" aria-label="Main">
      {navigationOf(viewer, account).map(({ title, links }) => (
        <section key={title} class="navigation-group">
          <h2 class="navigation-title">{title}</h2>
          <ul>
            {links.map((link) => (
              <li key={link.to}>
                <Link to={link.to} isCurrent={isWithin(path, link)}>
                  <Icon name={link.icon} />
                  {link.label}
                </Link>
              </li>
            ))}
          </ul>
        </section>
      ))}
    </nav>
  );
}
