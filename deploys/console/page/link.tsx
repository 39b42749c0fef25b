/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact';
import { ownPath } from '../own-path.ts';

type LinkProps = Readonly<{
  /** A path of the console, with its query. Anything else, such as `javascript:`, is shown as text without a link. */
  to: string;
  class?: string | undefined;
  label?: string | undefined;
  isCurrent?: boolean | undefined;
  children: ComponentChildren;
}>;

/** A link inside the console. */
export function Link({ to, class: name, label, isCurrent, children }: LinkProps) {
  const href = ownPath(to);
  if (href === undefined) return <span class={name}>{children}</span>;
  return (
    <a href={href} class={name} aria-label={label} aria-current={isCurrent ? 'page' : undefined}>
      {children}
    </a>
  );
}

/** A link that opens in the drawer at the side; without JavaScript, and in a new tab, it is the full page. */
export function DrawerLink({ to, class: name, children }: LinkProps) {
  const href = ownPath(to);
  if (href === undefined) return <span class={name}>{children}</span>;
  return (
    <a href={href} class={name} data-drawer>
      {children}
    </a>
  );
}
