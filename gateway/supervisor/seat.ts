import type { GatewayStatus } from '../../shared/gateway-status.ts';
import { type FromChild, messageFrom, type ToChild } from './messages.ts';
import type { MetricJson } from './metric-json.ts';

/** This process's place among those that a supervisor runs; one without a supervisor has none. */
export type Seat = Readonly<{
  /** From 1 to `gateway.processes`; the same for a process that takes another's place. */
  slot: number;
  /** Says that all else is ready; resolves to the port on which it may listen. */
  port(): Promise<number>;
  /** Says that it listens, and answers from now on what it has counted and how its backends stand. */
  serve(count: () => Promise<readonly MetricJson[]>, status: () => GatewayStatus): void;
}>;

/** The end of the channel to the supervisor that a process holds; `send` is there only when a parent opened one. */
export type Channel = Readonly<{
  send?: ((message: FromChild) => unknown) | undefined;
  on(event: 'message', take: (message: unknown) => void): unknown;
}>;

/** The environment variable that carries a process's slot from the supervisor to it; its name is no one's interface. */
export const SLOT_VARIABLE = 'SLUICE_GATEWAY_SLOT';

/**
 * The seat of a process that was started with `slot` and a channel; `undefined` for any other. When the supervisor
 * dies no message comes any more; it is the end of standard input that tells so.
 */
export function seatOf(slot: string | undefined, channel: Channel): Seat | undefined {
  if (slot === undefined || channel.send === undefined) return undefined;
  const port = Promise.withResolvers<number>();
  let count: () => Promise<readonly MetricJson[]> = () => Promise.resolve([]);
  let status: (() => GatewayStatus) | undefined;
  channel.on('message', (value) => {
    const message = messageFrom<ToChild>(value, ['listen', 'count', 'tell']);
    if (message?.kind === 'listen') port.resolve(message.port);
    if (message?.kind === 'tell' && status !== undefined)
      say({ kind: 'told', ask: message.ask, status: status() });
    if (message?.kind === 'count') void answer(message.ask);
  });

  async function answer(ask: number): Promise<void> {
    say({ kind: 'counted', ask, metrics: await count() });
  }

  function say(message: FromChild): void {
    try {
      channel.send?.(message);
    } catch {
      // The supervisor is gone; standard input has ended too.
    }
  }

  return {
    slot: Number(slot),
    port() {
      say({ kind: 'prepared' });
      return port.promise;
    },
    serve(counting, telling) {
      count = counting;
      status = telling;
      say({ kind: 'listening' });
    },
  };
}
