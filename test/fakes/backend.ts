import { PROBE_ID } from '../../gateway/upstream/health.ts';
import { idIn } from './raw-backend.ts';

/** One call as a scripted backend sees it: the parsed request, the raw text, and the HTTP request itself. */
export type SeenCall = Readonly<{
  method: string;
  id: string;
  params: unknown;
  text: string;
  request: Request;
}>;

/** What a scripted backend does with a call. `undefined` gets the plain answer. */
export type Script = (call: SeenCall) => Response | Promise<Response> | undefined;

/**
 * A Solana backend that follows a test's script, over a real socket on a free port. It stands in for what a test
 * cannot have: a node that fails on command, or answers 300 MB at a given pace. The id is echoed verbatim.
 */
export function startBackend(script: Script = () => undefined, port = 0) {
  const seen: SeenCall[] = [];
  const awaited: (readonly [calls: number, come: () => void])[] = [];
  let script_ = script;
  let probe_: Script = () => undefined;
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port,
    reusePort: false,
    idleTimeout: 0,
    development: false,
    async fetch(request) {
      const text = await request.text();
      const parsed: { method?: unknown; params?: unknown } = JSON.parse(text);
      const call = { method: String(parsed.method), id: idIn(text), params: parsed.params, text, request };
      if (call.id === `"${PROBE_ID}"`)
        return (await probe_(call)) ?? failure(call, -32601, 'Method not found');
      seen.push(call);
      for (const [count, come] of awaited) if (seen.length >= count) come();
      return (await script_(call)) ?? result(call, `"answer to ${call.method}"`);
    },
  });
  return {
    url: server.url.href,
    seen,
    /** Resolves when so many have been seen. */
    called: (count: number) =>
      new Promise<void>((come) => (seen.length >= count ? come() : void awaited.push([count, come]))),
    /** Changes what it does from the next call on. */
    script: (next: Script) => void (script_ = next),
    /** Changes what it does with the gateway's own questions, which are not in `seen`; until then it knows none of them. */
    probed: (next: Script) => void (probe_ = next),
    /** Requests under way. */
    pending: () => server.pendingRequests,
    async [Symbol.asyncDispose]() {
      await server.stop(true);
    },
  };
}

const JSON_TYPE = { headers: { 'content-type': 'application/json; charset=utf-8' } };

/** An answer in Agave's form: the id last, a line feed at the end, with a Content-Length. */
export function result({ id }: SeenCall, json: string): Response {
  return new Response(`{"jsonrpc":"2.0","result":${json},"id":${id}}\n`, JSON_TYPE);
}

/** An error of the method in Agave's form. */
export function failure({ id }: SeenCall, code: number, message: string, data?: object): Response {
  const error = JSON.stringify({ code, message, data });
  return new Response(`{"jsonrpc":"2.0","error":${error},"id":${id}}\n`, JSON_TYPE);
}

/** A chunked answer whose result is a text of `megabytes` MB; `between` runs before each MB; when it throws, the
 * connection breaks there. */
export function streamed(
  { id }: SeenCall,
  megabytes: number,
  between?: (written: number) => Promise<void> | void,
): Response {
  const chunk = Buffer.alloc(1 << 20, 'a');
  const source: Bun.DirectUnderlyingSource = {
    type: 'direct',
    async pull(controller) {
      try {
        await controller.write('{"jsonrpc":"2.0","result":"');
        for (let written = 0; written < megabytes; written++) {
          await between?.(written);
          await controller.write(chunk);
          await controller.flush();
        }
        await controller.write(`","id":${id}}\n`);
        controller.close();
      } catch (error) {
        controller.close(error instanceof Error ? error : new Error(String(error)));
      }
    },
  };
  return new Response(new ReadableStream(source), JSON_TYPE);
}
