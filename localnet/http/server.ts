/*
 * Agave's HTTP: the statuses and texts of jsonrpc-http-server 18, which SDKs have been written against.
 */
import { urlOf } from '../../shared/config/config.ts';
import { listenComplaint } from '../../shared/process.ts';
import type { Chain } from '../chain/chain.ts';
import { readEnvelope } from '../request/envelope.ts';
import { createDispatch, errorText, type OnFault } from './dispatch.ts';
import { bodyOf } from './stream.ts';

/** Agave's own limit of a request body. */
const BODY_BYTES_MAX = 50 * 1024;
const IDLE_TIMEOUT_S = 120;
const JSON_TYPE = /^application\/json(; ?charset=utf-8)?$/i;

/** Where to listen; port 0 takes a free one. */
export type ServeOptions = Readonly<{
  chain: Chain;
  hostname: string;
  port: number;
  onFault: OnFault;
}>;

/** A listening localnet. `stop` lets answers under way finish; `stop(true)` cuts them. */
export type ServedLocalnet = ReturnType<typeof serveLocalnet>;

/** Serves a chain. Throws an Error with one sentence when the address cannot be had. */
export function serveLocalnet(options: ServeOptions) {
  const { hostname, port } = options;
  try {
    const server = Bun.serve({
      hostname,
      port,
      fetch: createAnswerRequest(options),
      reusePort: false, // a second process must fail here, not share the port unseen
      development: false, // its error page shows source to the caller
      idleTimeout: IDLE_TIMEOUT_S,
      // Above the limit that is answered with Agave's text; Bun's own answer has none.
      maxRequestBodySize: BODY_BYTES_MAX * 64,
      error: (cause) => {
        options.onFault(cause);
        return text(500, 'Internal Server Error\n');
      },
    });
    const url = urlOf({ hostname, port: server.port ?? port }).origin;
    return { url, stop: (isAbrupt = false) => server.stop(isAbrupt) };
  } catch (cause) {
    throw new Error(listenComplaint('localnet.listen', { hostname, port }, cause), { cause });
  }
}

/** Makes `answerRequest`, the whole HTTP edge without a socket. */
export function createAnswerRequest({ chain, onFault }: Pick<ServeOptions, 'chain' | 'onFault'>) {
  const dispatch = createDispatch(chain, onFault);

  return async function answerRequest(request: Request): Promise<Response> {
    if (request.method === 'OPTIONS')
      return new Response('', {
        headers: { allow: 'OPTIONS, POST', accept: 'application/json', ...corsOf(request) },
      });
    if (request.method === 'GET' && new URL(request.url).pathname === '/health') return text(200, 'ok');
    if (request.method !== 'POST')
      return text(405, 'Used HTTP Method is not allowed. POST or OPTIONS is required\n');
    if (!JSON_TYPE.test(request.headers.get('content-type') ?? '')) {
      return text(415, 'Supplied content type is not allowed. Content-Type: application/json is required\n');
    }
    const body = await readBody(request);
    if (body === 'too-large') return text(413, 'request body size exceeds allowed maximum');
    const bodyText = textOf(body);
    if (bodyText === undefined) return text(400, 'request body is not UTF-8\n');
    return new Response(await answerBody(bodyText), {
      headers: { 'content-type': 'application/json; charset=utf-8', ...corsOf(request) },
    });
  };

  function answerBody(bodyText: string) {
    const envelope = readEnvelope(bodyText);
    if (envelope === undefined) return `${errorText({ code: -32700, message: 'Parse error' }, 'null')}\n`;
    const { elements, isBatch } = envelope;
    return elements.length === 0 ? '' : bodyOf(elements, isBatch, dispatch);
  }
}

function text(status: number, body: string): Response {
  return new Response(body, { status, headers: { 'content-type': 'text/plain; charset=utf-8' } });
}

function corsOf(request: Request): Record<string, string> {
  if (!request.headers.has('origin')) return {};
  const cors = { vary: 'origin', 'access-control-allow-origin': '*' };
  if (request.method !== 'OPTIONS') return cors;
  const asked = request.headers.get('access-control-request-headers');
  return {
    ...cors,
    'access-control-allow-methods': 'OPTIONS, POST',
    'access-control-max-age': '86400',
    ...(asked === null ? {} : { 'access-control-allow-headers': asked }),
  };
}

/** Reads a body, and stops reading above the limit. */
async function readBody(request: Request): Promise<Uint8Array | 'too-large'> {
  if (Number(request.headers.get('content-length') ?? 0) > BODY_BYTES_MAX) return 'too-large';
  const chunks: Uint8Array[] = [];
  let total = 0;
  for await (const chunk of request.body ?? []) {
    total += chunk.byteLength;
    if (total > BODY_BYTES_MAX) return 'too-large';
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function textOf(body: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body);
  } catch {
    return undefined;
  }
}
