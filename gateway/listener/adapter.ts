import type { ElysiaAdapter } from 'elysia';
import { WebStandardAdapter } from 'elysia/adapter/web-standard';
import type { Listen } from '../../shared/config/kinds.ts';
import { CallerRequest } from './caller-request.ts';
import { RpcResponse } from './rpc.ts';
import type { SocketListener } from './listener.ts';
import { webResponseOf } from './web.ts';

const web = WebStandardAdapter.handler;

type ContextSet = Parameters<typeof web.mapResponse>[1];

/**
 * Elysia on a listener of ours. A route's answer goes to the connection as it is where it is an `RpcResponse`, and by a `Response`
 * otherwise; `app.handle` gives a `Response` always.
 */
export function createAdapter(listener: SocketListener): ElysiaAdapter {
  return {
    ...WebStandardAdapter,
    name: 'sluice',
    handler: {
      ...web,
      mapResponse: (value, set, request) => mapped(value, request, set, web.mapResponse),
      mapEarlyResponse: (value, set, request) => mapped(value, request, set, web.mapEarlyResponse),
      mapCompactResponse(value, request) {
        if (value instanceof RpcResponse && request instanceof CallerRequest) return value;
        return mapped(value, request, undefined, (each) => web.mapCompactResponse(each, request));
      },
    },
    // Without it Elysia maps what `onError` gives without its request.
    composeError: { ...WebStandardAdapter.composeError, mapResponseContext: ',context.request' },
    listen: (app) => (options, callback) => {
      app.compile();
      // Elysia's type of it is that of `Bun.serve`, of which plugins use these members.
      app.server = listener.open(addressIn(options), (request) => app.fetch(request)) as typeof app.server;
      for (const { fn } of app.event.start ?? []) fn(app);
      if (app.server) callback?.(app.server);
      void app.modules.then(() => app.compile());
    },
    async stop(app, isNow) {
      await listener.close(...(isNow === true ? [0, 0] : []));
      if (app.server === null) return;
      app.server = null;
      for (const { fn } of app.event.stop ?? []) await fn(app);
    },
  };
}

function mapped(
  value: unknown,
  request: unknown,
  set: ContextSet | undefined,
  mapOther: (value: unknown, set: ContextSet, request: unknown) => unknown,
): unknown {
  // Elysia's own functions would go on with what it resolves to.
  if (value instanceof Promise) return value.then((each) => mapped(each, request, set, mapOther));
  if (!(value instanceof RpcResponse)) return mapOther(value, set as ContextSet, request); // the one without a set ignores it
  const response = set === undefined ? value : withSet(value, set);
  if (request instanceof CallerRequest) return response;
  return webResponseOf(response, request instanceof Request ? request : undefined);
}

/** The answer with what hooks have set beside it, as Elysia does it with a `Response`. */
function withSet(response: RpcResponse, set: ContextSet): RpcResponse {
  const { status, fields } = response;
  const hasFields = Object.keys(set.headers).length > 0 || set.cookie !== undefined;
  if (!hasFields && (set.status === 200 || status !== 200)) return response;
  const merged = web.mapResponse(new Response(null, { status, headers: fields }), set) as Response; // of a `Response` it makes one
  const { headers } = merged;
  const cookies = headers.getSetCookie();
  headers.delete('set-cookie');
  return new RpcResponse({
    ...response,
    status: merged.status,
    fields: Object.fromEntries(headers),
    cookies,
  });
}

function addressIn(options: Parameters<ReturnType<ElysiaAdapter['listen']>>[0]): Partial<Listen> {
  if (typeof options !== 'object') return { port: Number(options) };
  const { hostname, port } = options as Partial<Listen>; // the other members are those of `Bun.serve`
  return { ...(hostname === undefined ? {} : { hostname }), ...(port === undefined ? {} : { port }) };
}
