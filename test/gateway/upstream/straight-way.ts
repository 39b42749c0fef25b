import type { Backend } from '../../../gateway/upstream/backend.ts';
import type { CallReply } from '../../../gateway/upstream/failover.ts';
import type { HedgedCall } from '../../../gateway/upstream/hedge.ts';
import { plain, type RawExchange, startRawBackend } from '../../fakes/raw-backend.ts';
import { createVirtualClock } from '../virtual-clock.ts';
import { ACCOUNT_ABC, backendOf, callOf, contextOf, forwardOf, routeTo, textOf } from './of.ts';

export type Told = Readonly<{
  method?: string;
  params?: string;
  id?: string;
  accountId?: number;
  signal?: AbortSignal;
}>;

export const rpc = (id: string, result: string) => `{"jsonrpc":"2.0","result":${result},"id":${id}}`;
export const at = (slot: number, value = 'null') =>
  `{"context":{"apiVersion":"3.0.0","slot":${slot}},"value":${value}}`;
/** Resolves when it has happened, or should have long ago: what is expected then says what is missing. */
export async function happened(has: () => boolean): Promise<void> {
  for (const endMs = Date.now() + 4_500; !has() && Date.now() < endMs;) await Bun.sleep(1);
}
/** Long enough for what must not happen on loopback to have happened. */
export const nothingMore = () => Bun.sleep(30);

/**
 * Calls over the straight way to raw backends, of which the account prefers the first; hedged, when they are late by 5 ms, or
 * as late as the slowest three of the hundred before.
 */
export function world(count = 1, isHedged = false, slowestMs = 1) {
  const { clock, advance } = createVirtualClock();
  const fakes = Array.from({ length: count }, () =>
    startRawBackend((exchange) => exchange.send(plain(rpc(exchange.id, '1')))),
  );
  const backends = fakes.map(({ url }, i) => backendOf({ name: 'abc'[i] ?? '', at: url, clock }));
  const begun: number[] = [];
  const failures: string[] = [];
  const hedges: string[] = [];
  const { direct, pool, hedge } = forwardOf(backends, clock, {
    ...(isHedged ? { onHedge: (outcome) => void hedges.push(outcome) } : {}),
    onResponseStart: (_, ms) => void begun.push(ms),
    onFailure: ({ config }, { kind }) => void failures.push(`${config.name} ${kind}`),
  });
  const routes = new Map<string, ReturnType<typeof routeTo>>();
  if (hedge !== undefined) {
    // Of a call that is over nothing else is read.
    const over = { isOver: true } as HedgedCall;
    for (let i = 0; i < 500; i++) hedge.watch(over);
    for (let i = 0; i < 100; i++) backends[0]?.latencies.state?.note(i < 97 ? 1 : slowestMs);
    hedge.tick();
  }

  function call({
    method = 'getAccountInfo',
    params = '["x"]',
    id = '1',
    ...rest
  }: Told = {}): Promise<CallReply> {
    const route = routes.get(method) ?? routeTo(backends, method);
    routes.set(method, route);
    const context = contextOf({ accountId: ACCOUNT_ABC, ...rest });
    return new Promise((resolve) => {
      let replies = 0;
      direct(callOf(method, params, id), route, context, (reply) => {
        if (replies++ > 0) throw new Error('it replied twice');
        resolve(reply);
      });
    });
  }

  return {
    fakes,
    backends,
    advance,
    pool,
    begun,
    failures,
    hedges,
    call,
    text: async (told?: Told) => textOf(await call(told)),
    tick: () => backends.forEach(({ client }) => client.tick()),
    /** Lets the time come at which calls are late, until the second backend has what is sent to it; gives what it had before. */
    async late() {
      await fakes[0]?.called(1);
      advance(4);
      await nothingMore();
      const early = fakes[1]?.calls();
      const before = hedges.length;
      advance(1);
      await nothingMore();
      if (hedges.length > before) await fakes[1]?.called(1);
      return early;
    },
    inFlight: () => backends.map(({ inFlight }: Backend) => inFlight),
    /** Has a backend keep its calls waiting; gives them in their order. */
    held(backend = 0) {
      const exchanges: RawExchange[] = [];
      fakes[backend]?.script((exchange) => void exchanges.push(exchange));
      return exchanges;
    },
    [Symbol.dispose]() {
      for (const { client } of backends) client.close();
      for (const fake of fakes) fake[Symbol.dispose]();
    },
  };
}

export const ERROR = '{"jsonrpc":"2.0","error":{"code":-32602,"message":"Invalid param"},"id":1}';
export const BUSY = '{"jsonrpc":"2.0","error":{"code":-32005,"message":"Node is behind"},"id":1}';
