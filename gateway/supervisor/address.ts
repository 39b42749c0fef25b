import type { Listen } from '../../shared/config/kinds.ts';
import { listenComplaint } from '../../shared/listen-complaint.ts';

/** An address that nobody else can take until `port` is asked for. */
export type HeldAddress = Readonly<{
  /** Lets go of it, for processes that share it; resolves to the port, which the system chose if the config's is 0. */
  port(): Promise<number>;
}>;

export type Holding =
  | { readonly kind: 'held'; readonly address: HeldAddress }
  | { readonly kind: 'refused'; readonly sentence: string };

/**
 * Takes `listen` for this process alone. Processes that share a port do not notice a stranger who shares it too and
 * would be given a part of their connections; so the address is held alone first, until they are about to listen.
 */
export function holdAddress(listen: Listen): Holding {
  try {
    const server = Bun.serve({
      ...listen,
      reusePort: false,
      fetch: () => new Response(null, { status: 503 }),
    });
    const chosen = server.port ?? listen.port;
    let letGo: Promise<number> | undefined;
    return {
      kind: 'held',
      address: { port: () => (letGo ??= server.stop(true).then(() => chosen)) },
    };
  } catch (error) {
    return { kind: 'refused', sentence: listenComplaint('gateway.listen', listen, error) };
  }
}
