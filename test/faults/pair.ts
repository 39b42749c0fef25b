import type { Clock } from '../../shared/clock.ts';
import { type Script, startBackend } from '../fakes/backend.ts';
import { plain, type RawExchange, type RawScript, startRawBackend } from '../fakes/raw-backend.ts';
import { startGateway } from '../started/gateway.ts';
import { shared } from '../started/shared.ts';

/** What the config says beside the one backend `a`; `backend` are further members of its row. */
type Rows = Readonly<Record<string, unknown> & { backend?: object }>;

const rowsBefore = (url: string, { backend, ...rows }: Rows) => ({
  backends: [{ name: 'a', url, ...backend }],
  ...rows,
});

/** For all tests of a file: a backend below HTTP and a gateway before it. */
export async function rawPair(rows: Rows = {}, clock?: Clock, script: RawScript = () => undefined) {
  const backend = shared(startRawBackend(script));
  return { backend, gateway: shared(await startGateway(rowsBefore(backend.url, rows), clock)) };
}

/** For all tests of a file: a scripted backend and a gateway before it. */
export async function pair(rows: Rows = {}, clock?: Clock, script?: Script) {
  const backend = shared(startBackend(script));
  return { backend, gateway: shared(await startGateway(rowsBefore(backend.url, rows), clock)) };
}

type Id = number | string;

/** Texts of JSON-RPC as the gateway and its backends write them; ids are JSON. */
export const callText = (
  id: Id,
  method = 'getBlockHeight',
  params = method === 'getBlockHeight' ? `[${id}]` : '',
) => `{"jsonrpc":"2.0","id":${id},"method":"${method}"${params && `,"params":${params}`}}`;
export const batchText = (...ids: readonly number[]) => `[${ids.map((id) => callText(id)).join()}]`;
export const resultText = (result: number | string, id: Id = 1) =>
  `{"jsonrpc":"2.0","result":${result},"id":${id}}`;
export const errorText = (code: number, message: string, id: Id = 'null') =>
  `{"jsonrpc":"2.0","error":{"code":${code},"message":"${message}"},"id":${id}}`;
export const lostText = (id: Id = 1) => errorText(-503, 'No backend available', id);

/** The number of a call of `callText` that a raw backend got, by its parameters: it has another id than its caller gave it. */
export const numberOf = ({ text }: RawExchange) => Number(/"params":\[(\d+)\]/.exec(text)?.[1]);

/** Has a raw backend answer with the number as the result. */
export const echoNumber = (exchange: RawExchange) =>
  exchange.send(plain(resultText(numberOf(exchange), exchange.id)));

/** Begins an answer with `begin` and repeats `piece` until the gateway has let go of it; `onSent` is called for each. */
export const endless =
  (
    begin: string,
    piece: string,
    onGone: () => void = () => undefined,
    onSent: () => void = () => undefined,
  ): RawScript =>
  async (exchange) => {
    let isGone = false;
    void exchange.gone.then(() => {
      isGone = true;
      onGone();
    });
    await exchange.send(begin);
    for (; !isGone; onSent()) await exchange.send(piece);
  };

/** `undefined` while a promise is pending; what it gives otherwise. */
export const soFar = <T>(promise: Promise<T>) => Promise.race([promise, Bun.sleep(0).then(() => undefined)]);
