import type { Clock } from '../shared/clock.ts';
import type { GatewayConfig } from '../shared/config/config.ts';
import { fired } from '../shared/stop.ts';
import type { Gateway } from './gateway.ts';
import { listen } from './listen.ts';
import { listenForMetrics } from './metrics-listener.ts';
import type { Seat } from './supervisor/seat.ts';

/** How long requests under way may take to end after a stop was asked for. */
const DRAIN_MS = 25_000;

/** How long callers are sent away before the listener closes: a load balancer looks at the health two or three times. */
const LEAVE_MS = 5_000;

export type Opened =
  | {
      readonly kind: 'open';
      readonly url: URL;
      /** `undefined` when the supervisor has the metrics. */
      readonly metricsUrl: URL | undefined;
      /** Resolves when the last answer has ended or was cut. */
      drain(): Promise<void>;
    }
  | { readonly kind: 'refused'; readonly sentence: string }
  /** A stop was asked for before it could listen. */
  | { readonly kind: 'stopped' };

type OpeningOptions = Readonly<{ clock: Clock; seat: Seat | undefined; stop: AbortSignal }>;

/** Opens what a gateway process listens on: alone, both listeners; in a seat, the RPC listener on the port it is given. */
export async function openListeners(
  config: GatewayConfig,
  gateway: Gateway,
  { clock, seat, stop }: OpeningOptions,
): Promise<Opened> {
  return seat === undefined
    ? openAlone(config, gateway, clock)
    : openSeated(config, gateway, clock, seat, stop);
}

function openAlone(config: GatewayConfig, gateway: Gateway, clock: Clock): Opened {
  const rpc = listen(config, gateway, { clock, shared: false });
  if (rpc.kind === 'refused') return rpc;
  const metrics = listenForMetrics(config.metrics, gateway.metrics, gateway.status);
  if (metrics.kind === 'refused') {
    void rpc.close(0, 0);
    return metrics;
  }
  return {
    kind: 'open',
    url: rpc.url,
    metricsUrl: metrics.url,
    async drain() {
      await rpc.close(DRAIN_MS, LEAVE_MS);
      await metrics.close();
    },
  };
}

async function openSeated(
  config: GatewayConfig,
  gateway: Gateway,
  clock: Clock,
  seat: Seat,
  stop: AbortSignal,
): Promise<Opened> {
  const port = await Promise.race([seat.port(), fired(stop)]);
  if (port === undefined) return { kind: 'stopped' };
  const address = { hostname: config.listen.hostname, port };
  const rpc = listen({ ...config, listen: address }, gateway, { clock, shared: true });
  if (rpc.kind === 'refused') return rpc;
  return {
    kind: 'open',
    url: rpc.url,
    metricsUrl: undefined,
    drain: () => rpc.close(DRAIN_MS, LEAVE_MS),
  };
}
