import { type GatewayConfig, gatewayUrl, urlOf } from '../shared/config/config.ts';
import { unreadableTls } from '../shared/config/tls.ts';
import { listenComplaint } from '../shared/listen-complaint.ts';
import { createApp } from './app.ts';
import type { Gateway } from './gateway.ts';

export type Listening =
  | {
      readonly kind: 'listening';
      readonly url: URL;
      readonly metricsUrl: URL;
      /** Takes no more connections, lets answers under way end for `drainMs`, then cuts them. */
      close(drainMs: number): Promise<void>;
    }
  | { readonly kind: 'refused'; readonly sentence: string };

/** Opens the RPC listener and the metrics listener, or says in one sentence which of them cannot be had. */
export function listen(config: GatewayConfig, { answer, health, metrics }: Gateway): Listening {
  const unreadable = unreadableTls(config.tls);
  if (unreadable !== undefined) return { kind: 'refused', sentence: unreadable };
  const app = createApp(config, answer, health);
  try {
    app.listen(config.listen);
  } catch (error) {
    const sentence = listenComplaint('gateway.listen', config.listen, error);
    return {
      kind: 'refused',
      sentence: config.tls === undefined || isAboutAddress(error) ? sentence : badTls(error),
    };
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
    return { kind: 'refused', sentence: listenComplaint('gateway.metrics', config.metrics, error) };
  }
  const listen = { hostname: config.listen.hostname, port: app.server?.port ?? config.listen.port };
  const metricsListen = {
    hostname: config.metrics.hostname,
    port: metricsServer.port ?? config.metrics.port,
  };
  return {
    kind: 'listening',
    url: gatewayUrl({ ...config, listen }),
    metricsUrl: urlOf(metricsListen),
    close,
  };

  async function close(drainMs: number): Promise<void> {
    const timer = AbortSignal.timeout(drainMs);
    timer.addEventListener('abort', () => void app.server?.stop(true), { once: true });
    await app.server?.stop();
    await metricsServer.stop(true);
  }
}

function isAboutAddress(error: unknown): boolean {
  return error instanceof Error && 'code' in error && /^EA(DDR|CCES)/.test(String(error.code));
}

function badTls(error: unknown): string {
  const reason = error instanceof Error ? error.message : String(error);
  return `The certificate and key of gateway.tls cannot be used (${reason}).`;
}
