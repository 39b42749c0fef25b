import type { Viewer } from '../../../auth/auth-service.ts';
import { openPage } from '../../page.ts';
import { paths, redirect } from '../../paths.ts';

/** Where everybody begins. */
export const startPage = openPage({
  path: paths.start,
  show: (_, { viewer }) => redirect(viewer === undefined ? paths.login : startPathOf(viewer)),
});

function startPathOf({ role, accountId }: Viewer): string {
  if (role === 'operator') return paths.operatorAccounts;
  return accountId === undefined ? paths.settings : paths.overview(accountId);
}

/** Keeps the chosen colours in a cookie and comes back to the page. */
export const themePage = openPage({
  path: paths.theme,
  forms: {
    '': ({ origin }, { form }) =>
      redirect(form.get('next') ?? paths.start, undefined, [
        themeCookie(form.get('theme'), origin.startsWith('https:')),
      ]),
  },
});

const YEAR_SECONDS = 365 * 86_400;

/** The `Set-Cookie` of a choice, neither secret nor personal; no choice takes the cookie away. */
export function themeCookie(chosen: string | null, isSecure: boolean): string {
  const [value, maxAge] = chosen === 'light' || chosen === 'dark' ? [chosen, YEAR_SECONDS] : ['', 0];
  const secure = isSecure ? '; Secure' : '';
  return `theme=${value}; Path=/; Max-Age=${maxAge}; SameSite=Lax; HttpOnly${secure}`;
}
