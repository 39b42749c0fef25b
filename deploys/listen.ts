import type { DeploysConfig } from '../shared/config/config.ts';
import { urlOf } from '../shared/config/config.ts';
import type { Listen } from '../shared/config/kinds.ts';
import { listenComplaint } from '../shared/listen-complaint.ts';

/** `address` is the IP of the connection's other end. */
type Answer = (request: Request, address?: string) => Response | Promise<Response>;

export type Listening =
  | {
      readonly kind: 'listening';
      readonly url: URL;
      readonly metricsUrl: URL;
      /** Takes no more connections, lets answers under way end for `drainMs`, then cuts them. */
      close(drainMs: number): Promise<void>;
    }
  | { readonly kind: 'refused'; readonly sentence: string };

/** No answer of this app takes longer than a moment. */
const IDLE_SECONDS = 30;
/** A webhook's settings are a few kilobytes, with every program named. */
const BODY_BYTES_MAX = 65_536;

/**
 * Opens the API and metrics listeners, or says in one sentence which of them cannot be had. Bun.serve is given the
 * whole of `answer`, so that what the tests ask without a socket is what the socket answers.
 */
export function listen(
  config: Pick<DeploysConfig, 'listen' | 'metrics'>,
  answer: Answer,
  answerMetrics: Answer,
): Listening {
  const api = serve('deploys.listen', config.listen, answer);
  if (typeof api === 'string') return { kind: 'refused', sentence: api };
  const metrics = serve('deploys.metrics', config.metrics, answerMetrics);
  if (typeof metrics === 'string') {
    void api.stop(true);
    return { kind: 'refused', sentence: metrics };
  }
  return {
    kind: 'listening',
    url: urlOf({ ...config.listen, port: api.port ?? config.listen.port }),
    metricsUrl: urlOf({ ...config.metrics, port: metrics.port ?? config.metrics.port }),
    close: async (drainMs) => {
      AbortSignal.timeout(drainMs).addEventListener('abort', () => void api.stop(true), { once: true });
      await api.stop();
      await metrics.stop(true);
    },
  };
}

/** Stands in the address of a request that names no host. */
const NO_HOST = 'http://localhost';

function serve(key: string, { hostname, port }: Listen, fetch: Answer): Bun.Server<undefined> | string {
  try {
    return Bun.serve({
      hostname,
      port,
      fetch: (request, server) => {
        const whole = withWholeUrl(request);
        if (whole === undefined) return Response.json({ error: 'Invalid Host header' }, { status: 400 });
        return fetch(whole, server.requestIP(request)?.address);
      },
      reusePort: false, // a second process must fail here, not share the port unseen
      development: false, // its error page shows source to the caller
      idleTimeout: IDLE_SECONDS,
      maxRequestBodySize: BODY_BYTES_MAX,
      error: () => Response.json({ error: 'Internal error' }, { status: 500 }),
    });
  } catch (error) {
    return listenComplaint(key, { hostname, port }, error);
  }
}

/** The request with an address that can be read; probes of HTTP/1.0 name no host. `undefined`: its host can be none. */
function withWholeUrl(request: Request): Request | undefined {
  if (URL.canParse(request.url)) return request;
  const isNamed = (request.headers.get('host') ?? '') !== '';
  if (isNamed || !URL.canParse(request.url, NO_HOST)) return undefined;
  return new Request(new URL(request.url, NO_HOST).href, request);
}
