import { urlOf } from '../shared/config/config.ts';
import type { Listen } from '../shared/config/kinds.ts';
import { listenComplaint } from '../shared/listen-complaint.ts';

/** What Prometheus is given. */
export type MetricsText = Readonly<{ text(): Promise<string>; contentType: string }>;

export type MetricsListening =
  | { readonly kind: 'listening'; readonly url: URL; close(): Promise<void> }
  | { readonly kind: 'refused'; readonly sentence: string };

/** Opens the listener of `gateway.metrics`, or says in one sentence why it cannot be had. */
export function listenForMetrics(address: Listen, { text, contentType }: MetricsText): MetricsListening {
  try {
    const server = Bun.serve({
      ...address,
      reusePort: false,
      development: false,
      routes: {
        '/metrics': async () => new Response(await text(), { headers: { 'content-type': contentType } }),
      },
      fetch: () => new Response('Not found. Metrics are at /metrics.\n', { status: 404 }),
    });
    const url = urlOf({ hostname: address.hostname, port: server.port ?? address.port });
    return { kind: 'listening', url, close: () => server.stop(true) };
  } catch (error) {
    return { kind: 'refused', sentence: listenComplaint('gateway.metrics', address, error) };
  }
}
