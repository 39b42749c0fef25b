import { urlOf } from '../shared/config/config.ts';
import type { GatewayStatus } from '../shared/gateway-status.ts';
import type { Listen } from '../shared/config/kinds.ts';
import { listenComplaint } from '../shared/listen-complaint.ts';

/** What Prometheus is given. */
export type MetricsText = Readonly<{ text(): Promise<string>; contentType: string }>;

/** What the console of the same operator is given. */
export type StatusOf = () => GatewayStatus | Promise<GatewayStatus>;

export type MetricsListening =
  | { readonly kind: 'listening'; readonly url: URL; close(): Promise<void> }
  | { readonly kind: 'refused'; readonly sentence: string };

/** Opens the listener of `gateway.metrics`, or says in one sentence why it cannot be had. */
export function listenForMetrics(
  address: Listen,
  { text, contentType }: MetricsText,
  status: StatusOf,
): MetricsListening {
  try {
    const server = Bun.serve({
      ...address,
      reusePort: false,
      development: false,
      routes: {
        '/status.json': async () => Response.json(await status()),
        '/metrics': async () => new Response(await text(), { headers: { 'content-type': contentType } }),
      },
      fetch: () =>
        new Response('Not found. Metrics are at /metrics, the backends at /status.json.\n', { status: 404 }),
    });
    const url = urlOf({ hostname: address.hostname, port: server.port ?? address.port });
    return { kind: 'listening', url, close: () => server.stop(true) };
  } catch (error) {
    return { kind: 'refused', sentence: listenComplaint('gateway.metrics', address, error) };
  }
}
