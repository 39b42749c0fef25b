import { ASSETS_PATH } from './assets/asset.ts';
import { createAssets } from './assets/assets.ts';
import { createConsoleApp } from './routing/app.ts';
import { createAnswer, type RouteDeps } from './routing/answer.ts';
import { forAnyone, type Route } from './routing/route.ts';
import { createShow } from './show.tsx';
import { createStartPage } from './start-page.ts';
import { createThemeAction } from './theme-action.ts';

export type ConsoleDeps = Omit<RouteDeps, 'show'>;
/** What the app takes in: the routes, and the page of an address without one. */
export type Console = ReturnType<typeof createConsole>;

/** Every page of the console, one row each. A page's own file says what it shows. */
function routesOf(deps: ConsoleDeps): readonly Route[] {
  return [
    forAnyone('/', { get: createStartPage() }),
    forAnyone('/theme', { post: createThemeAction(deps.origin) }),
  ];
}

/** The console as an Elysia app with its assets under `ASSETS_PATH`, and the answer to every address that nothing is at. */
export function createConsole(deps: ConsoleDeps, routes: readonly Route[] = routesOf(deps)) {
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
