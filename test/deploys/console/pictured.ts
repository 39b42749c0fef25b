import { mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type StartedBrowser, startBrowser } from '../../started/browser.ts';
import { ORIGIN } from './started.tsx';

/** Where the pictures go, to be looked at. */
export const PICTURES = join(tmpdir(), 'sluice-console');

type World = Disposable & Readonly<{ app: { handle(request: Request): Response | Promise<Response> } }>;

/** A console on a real port with a browser before it. `cookie` is of whom the browser stands for, where the world does not say. */
export async function startPictured<W extends World>(
  world: W,
  cookie?: string,
): Promise<Readonly<{ world: W; browser: StartedBrowser; origin: string }> & AsyncDisposable> {
  mkdirSync(PICTURES, { recursive: true });
  const browser = await startBrowser();
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    reusePort: false,
    fetch(request) {
      const asked = new Request(request.url.replace(/^http:\/\/[^/]+/, ORIGIN), request);
      if (cookie !== undefined) asked.headers.set('cookie', cookie);
      return world.app.handle(asked);
    },
  });
  return {
    world,
    browser,
    origin: server.url.origin,
    async [Symbol.asyncDispose]() {
      await browser[Symbol.asyncDispose]();
      await server.stop(true);
      world[Symbol.dispose]();
    },
  };
}
