/** How the viewer wants the console to look; `undefined`: as the system does. */
export type Theme = 'light' | 'dark' | undefined;

/** Where the choice is kept. It is no secret and says nothing about anybody. */
export const THEME_COOKIE = 'theme';
const YEAR_SECONDS = 365 * 86_400;

/** The choice in a request's cookies; anything unknown is no choice. */
export function themeOf(request: Request): Theme {
  const cookies = request.headers.get('cookie') ?? '';
  const value = /(?:^|;\s*)theme=([a-z]+)/.exec(cookies)?.[1];
  return value === 'light' || value === 'dark' ? value : undefined;
}

/** The `Set-Cookie` of a choice; no choice takes the cookie away. */
export function themeCookie(chosen: string | null, isSecure: boolean): string {
  const [value, maxAge] = chosen === 'light' || chosen === 'dark' ? [chosen, YEAR_SECONDS] : ['', 0];
  const secure = isSecure ? '; Secure' : '';
  return `${THEME_COOKIE}=${value}; Path=/; Max-Age=${maxAge}; SameSite=Lax; HttpOnly${secure}`;
}
