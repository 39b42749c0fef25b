import { type GatewayConfig, urlOf } from '../shared/config/config.ts';
import type { Listen } from '../shared/config/kinds.ts';
import { createApp } from './app.ts';
import type { Gateway } from './gateway.ts';

export type Listening =
  | { readonly kind: 'listening'; readonly url: URL; close(drainMs: number): Promise<void> }
  | { readonly kind: 'refused'; readonly sentence: string };

/** Opens the RPC listener and the metrics listener, or says in one sentence which of them cannot be had. */
export function listen(config: GatewayConfig, { answer, health, metrics }: Gateway): Listening {
  const app = createApp(config, answer, health);
  try {
    app.listen(config.listen);
  } catch (error) {
    return { kind: 'refused', sentence: taken('gateway.listen', config.listen, error) };
  }
  let metricsServer: Bun.Server<undefined>;
  try {
    metricsServer = Bun.serve({
      ...config.metrics,
      reusePort: false,
      routes: {
        '/metrics': async () =>
          new Response(await metrics.text(), { headers: { 'content-type': metrics.contentType } }),
      },
      fetch: () => new Response('Not found. Metrics are at /metrics.\n', { status: 404 }),
    });
  } catch (error) {
    void app.server?.stop(true);
    return { kind: 'refused', sentence: taken('gateway.metrics', config.metrics, error) };
  }
  const url = urlOf({ hostname: config.listen.hostname, port: app.server?.port ?? config.listen.port });
  if (config.tls !== undefined) url.protocol = 'https:';
  return { kind: 'listening', url, close };

  /** Takes no more connections, lets answers under way end for `drainMs`, then cuts them. */
  async function close(drainMs: number): Promise<void> {
    const timer = AbortSignal.timeout(drainMs);
    timer.addEventListener('abort', () => void app.server?.stop(true), { once: true });
    await app.server?.stop();
    await metricsServer.stop(true);
  }
}

function taken(key: string, { hostname, port }: Listen, error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
  const why = code === 'EADDRINUSE' ? 'another process has it' : code;
  return `The address ${hostname}:${port} cannot be listened on (${why}); free it or change ${key} in the config.`;
}
