/** @jsxImportSource preact */
import { LOGOUT_PATH } from '../../users/logout-path.ts';
import type { Viewer } from '../viewer.ts';
import { Icon } from './icon.tsx';
import { Link } from './link.tsx';
import type { Theme } from './theme.ts';

type TopBarProps = Readonly<{ viewer: Viewer | undefined; theme: Theme; here: string }>;

/** The line above every page: whose service, who looks, how it looks, the way out. */
export function TopBar({ viewer, theme, here }: TopBarProps) {
  return (
    <header class="top-bar">
      <Link to="/" class="brand">
        <svg
          class="brand-mark"
          viewBox="0 0 32 32"
          width="22"
          height="22"
          aria-hidden="true"
          focusable="false"
        >
          <path
            d="M4 11h13a4 4 0 0 0 0-8M4 16h18a4.5 4.5 0 0 1 0 9M4 21h10a4 4 0 0 1 0 8"
            fill="none"
            stroke="currentColor"
            stroke-width="3"
            stroke-linecap="round"
          />
        </svg>
        Sluice
      </Link>
      <div class="top-bar-end">
        <ThemeForm theme={theme} here={here} />
        {viewer && (
          <>
            <Link to="/settings" class="top-bar-link" label={`Settings of ${viewer.email}`}>
              <Icon name="sliders" />
              <span class="viewer-email fold">{viewer.email}</span>
            </Link>
            <form method="post" action={LOGOUT_PATH}>
              <button type="submit" class="quiet">
                <Icon name="out" />
                <span class="fold">Sign out</span>
              </button>
            </form>
          </>
        )}
      </div>
    </header>
  );
}

/** Three choices, because "as the system does" must be there to come back to. */
function ThemeForm({ theme, here }: Readonly<{ theme: Theme; here: string }>) {
  const choice = (value: string, label: string, icon: 'sun' | 'moon' | 'gauge') => (
    <button
      type="submit"
      name="theme"
      value={value}
      class="theme-choice"
      aria-pressed={(theme ?? 'system') === value ? 'true' : 'false'}
      title={label}
    >
      {icon === 'gauge' ? <span aria-hidden="true">A</span> : <Icon name={icon} />}
      <span class="hidden">{label}</span>
    </button>
  );
  return (
    <form method="post" action="/theme" class="theme-form" aria-label="Colours">
      <input type="hidden" name="next" value={here} />
      {choice('system', 'Colours of the system', 'gauge')}
      {choice('light', 'Light colours', 'sun')}
      {choice('dark', 'Dark colours', 'moon')}
    </form>
  );
}
