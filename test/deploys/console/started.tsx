/** @jsxImportSource preact */
import type { PageServices } from '../../../deploys/console/page-services.ts';
import type { PageRoute } from '../../../deploys/console/page.ts';
import { startPage, themePage } from '../../../deploys/console/pages/login/login.tsx';
import { type ConsoleDeps, createConsole } from '../../../deploys/console/router.ts';
import type { Viewer } from '../../../deploys/auth/auth-service.ts';

/** Where the console of these tests lives. */
export const ORIGIN = 'https://console.example.com';
/** A user of account 7. */
export const CUSTOMER: Viewer = { userId: 'u1', email: 'ann@example.com', role: 'customer', accountId: 7 };
export const OPERATOR: Viewer = {
  userId: 'u2',
  email: 'op@example.com',
  role: 'operator',
  accountId: undefined,
};

const ACCOUNTS = new Map([
  [7, { id: 7, name: 'acme', plan: 'trial' }],
  [8, { id: 8, name: 'other', plan: undefined }],
]);

/** The console without sockets, for one viewer, over two accounts, with pages that use no services. */
export function startConsole(
  viewer: Viewer | undefined,
  pages: readonly PageRoute[] = [startPage, themePage],
  deps: Partial<ConsoleDeps> = {},
) {
  const broken: unknown[] = [];
  const made = createConsole(
    {
      viewerOf: () => Promise.resolve(viewer),
      accountOf: (id) => ACCOUNTS.get(id),
      clock: { now: () => Date.UTC(2026, 10, 21, 22, 5, 9), sleep: () => new Promise(() => undefined) },
      origin: ORIGIN,
      takeChange: () => ({ kind: 'allowed' }),
      noteBroken: (error) => broken.push(error),
      ...deps,
    },
    { origin: ORIGIN } as PageServices, // nothing else is used
    pages,
  );
  const ask = (path: string, init: RequestInit = {}) =>
    Promise.resolve(made.app.handle(new Request(`${ORIGIN}${path}`, init)));
  /** A form as a page of the console sends it. */
  const post = (path: string, fields: Record<string, string>, headers: Record<string, string> = {}) =>
    ask(path, {
      method: 'POST',
      body: new URLSearchParams(fields),
      headers: { 'sec-fetch-site': 'same-origin', ...headers },
    });
  return { ...made, ask, post, broken };
}

/** What answers as the console at `ORIGIN` does, on a port of this machine for a browser. */
export function serveInBrowser(handle: (request: Request) => Response | Promise<Response>) {
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    reusePort: false,
    fetch: (request) => handle(new Request(request.url.replace(/^http:\/\/[^/]+/, ORIGIN), request)),
  });
  return { origin: server.url.origin, [Symbol.asyncDispose]: () => server.stop(true) };
}
