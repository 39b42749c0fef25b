import { ASSETS_PATH } from './assets/asset.ts';
import { createAssets } from './assets/assets.ts';
import { createConsoleApp } from './routing/app.ts';
import { createAnswer, type RouteDeps } from './routing/answer.ts';
import type { Route } from './routing/route.ts';
import { createShow } from './show.tsx';

export type ConsoleDeps = Omit<RouteDeps, 'show'>;
/** What the app takes in: the routes, and the page of an address without one. */
export type Console = ReturnType<typeof createConsole>;

/** The console as an Elysia app with its assets under `ASSETS_PATH`, and the answer to every address that nothing is at. */
export function createConsole(deps: ConsoleDeps, routes: readonly Route[]) {
  const assets = createAssets();
  const answer = createAnswer({ ...deps, show: createShow(assets.paths) });
  const nothing = (request: Request) => answer(request, {}, undefined);
  return {
    app: createConsoleApp(
      routes,
      answer,
      ASSETS_PATH,
      (request) => assets.answer(request) ?? nothing(request),
    ),
    answerNothing: nothing,
  };
}
