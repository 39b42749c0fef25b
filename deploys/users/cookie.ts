/**
 * A cookie of the console. `__Host-` makes browsers refuse it from a subdomain, from another path and over plain http
 * except on this machine.
 */
export type CookieName = `__Host-${string}`;

export const SESSION_COOKIE: CookieName = '__Host-sluice';

/** The value of a request's cookie; `undefined` when there is none, or more than one. */
export function cookieOf(headers: Headers, name: CookieName): string | undefined {
  const pairs = (headers.get('cookie') ?? '').split(';').map((pair) => pair.trim());
  const values = pairs.filter((pair) => pair.startsWith(`${name}=`));
  return values.length === 1 ? values[0]?.slice(name.length + 1) : undefined;
}

/** The `Set-Cookie` of a value of base64url and dots; `lastMs` 0 ends it. Lax, so that a link from elsewhere finds its reader logged in. */
export function setCookie(name: CookieName, value: string, lastMs: number): string {
  return `${name}=${value}; Path=/; Max-Age=${Math.floor(lastMs / 1_000)}; HttpOnly; Secure; SameSite=Lax`;
}
