import { Elysia } from 'elysia';
import type { Route } from './route.ts';

type Params = Readonly<Record<string, string>>;
type Answer = (request: Request, params: Params, route: Route) => Promise<Response>;

/** Left out of the API's document, and its body left to the page. */
const RAW = { detail: { hide: true }, parse: 'none' } as const;

/**
 * The routes as an Elysia app. Every method goes to `answer`, which knows which of them there are; GET and HEAD stand
 * by themselves, because an `all` of another app must not win over them.
 */
export function createConsoleApp(
  routes: readonly Route[],
  answer: Answer,
  assetsPath: string,
  answerAsset: (request: Request) => Response | Promise<Response>,
) {
  const app = new Elysia();
  for (const route of routes) {
    const handle = ({ request, params }: { request: Request; params?: Params }) =>
      answer(request, params ?? {}, route); // a path without names has none
    app
      .get(route.path, handle, RAW)
      .head(route.path, handle, RAW)
      .post(route.path, handle, RAW)
      .all(route.path, handle, RAW);
  }
  const handleAsset = ({ request }: { request: Request }) => answerAsset(request);
  return app.get(`${assetsPath}/*`, handleAsset, RAW).head(`${assetsPath}/*`, handleAsset, RAW);
}
