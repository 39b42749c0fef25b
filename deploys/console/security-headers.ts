/** Nothing from another origin, nothing inline, no frame around it. */
export const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** The headers of every response of the console, pages and assets alike. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': CONTENT_SECURITY_POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};

/** Adds the headers above and `no-store` to a response, unless it has its own. */
export function secured(response: Response): Response {
  const { headers } = response;
  for (const [name, value] of Object.entries({ ...SECURITY_HEADERS, 'cache-control': 'no-store' })) {
    if (!headers.has(name)) headers.set(name, value);
  }
  return response;
}
