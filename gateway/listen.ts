import type { Clock } from '../shared/clock.ts';
import { type GatewayConfig, gatewayUrl } from '../shared/config/config.ts';
import { unreadableTls } from '../shared/config/tls.ts';
import { listenComplaint } from '../shared/listen-complaint.ts';
import { createApp } from './app.ts';
import type { Gateway } from './gateway.ts';
import { createLeaving } from './leaving.ts';

export type Listening =
  | {
      readonly kind: 'listening';
      readonly url: URL;
      /**
       * Sends callers away for as long as they come, at most `leaveMs`; then takes no more connections, lets answers
       * under way end, and cuts them `drainMs` after the call.
       */
      close(drainMs: number, leaveMs: number): Promise<void>;
    }
  | { readonly kind: 'refused'; readonly sentence: string };

type ListenOptions = Readonly<{
  clock: Clock;
  /** Other processes of ours listen on the same address; whether a stranger has it is then not noticed here. */
  shared: boolean;
}>;

/** Opens the RPC listener, or says in one sentence why it cannot be had. */
export function listen(
  config: GatewayConfig,
  { answer, health }: Pick<Gateway, 'answer' | 'health'>,
  { clock, shared }: ListenOptions,
): Listening {
  const unreadable = unreadableTls(config.tls);
  if (unreadable !== undefined) return { kind: 'refused', sentence: unreadable };
  const leaving = createLeaving(clock);
  const app = createApp(config, answer, health, { shared, leaving });
  try {
    app.listen(config.listen);
  } catch (error) {
    const sentence = listenComplaint('gateway.listen', config.listen, error);
    return {
      kind: 'refused',
      sentence: config.tls === undefined || isAboutAddress(error) ? sentence : badTls(error),
    };
  }
  const listen = { hostname: config.listen.hostname, port: app.server?.port ?? config.listen.port };
  return { kind: 'listening', url: gatewayUrl({ ...config, listen }), close };

  async function close(drainMs: number, leaveMs: number): Promise<void> {
    const closed = new AbortController();
    void clock.sleep(drainMs, closed.signal).then(() => {
      if (!closed.signal.aborted) void app.server?.stop(true);
    });
    if (leaveMs > 0) await leaving.begin(leaveMs);
    await app.server?.stop();
    closed.abort();
  }
}

function isAboutAddress(error: unknown): boolean {
  return error instanceof Error && 'code' in error && /^EA(DDR|CCES)/.test(String(error.code));
}

function badTls(error: unknown): string {
  const reason = error instanceof Error ? error.message : String(error);
  return `The certificate and key of gateway.tls cannot be used (${reason}).`;
}
