/**
 * Whether a request that changes something comes from a page of the console itself. `Sec-Fetch-Site` says so in every
 * browser of today; `Origin` stands in where it is missing; a request with neither is no form of ours.
 */
export function isSameOrigin(request: Request, origin: string): boolean {
  const site = request.headers.get('sec-fetch-site');
  if (site !== null) return site === 'same-origin';
  return request.headers.get('origin') === origin;
}
