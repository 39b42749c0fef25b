import { expect } from 'bun:test';
import { Elysia } from 'elysia';
import { createAdapter } from '../../gateway/listener/adapter.ts';
import { type RpcRequest, RpcResponse } from '../../gateway/listener/rpc.ts';
import { SocketListener } from '../../gateway/listener/listener.ts';
import { createApp } from '../../gateway/server.ts';
import { systemClock } from '../../shared/clock.ts';
import { testConfig } from '../started/gateway.ts';
import { streamBodyOf } from './stream-body.ts';

/** Fields of a connection, which no `Response` has. */
const HOP = ['date', 'connection', 'transfer-encoding', 'keep-alive'];

/** What a caller sees of an answer: a body that is cut is told from a whole one. */
export async function seen(response: Response) {
  const fields = Object.fromEntries([...response.headers].filter(([name]) => !HOP.includes(name)));
  const cookies = response.headers.getSetCookie();
  let body = '';
  try {
    for await (const piece of response.body ?? []) body += Buffer.from(piece).toString();
  } catch {
    body = 'cut';
  }
  return { status: response.status, fields, cookies, body };
}

type App = Readonly<{ handle(request: Request): Promise<Response> }>;
export type Init = Readonly<{ method?: string; headers?: Record<string, string>; body?: string }>;

/** The answer to both, which must be the same; a listener adds the length of a whole body where a `Response` says none. */
export async function onBoth(app: App, url: URL, path: string, init: () => Init) {
  const byHandle = await seen(await app.handle(new Request(`http://localhost${path}`, init())));
  const bySocket = await seen(await fetch(`${url.origin}${path}`, { redirect: 'manual', ...init() }));
  const { 'content-length': length, ...fields } = bySocket.fields;
  if (length === undefined || byHandle.fields['content-length'] !== undefined)
    expect(byHandle).toEqual(bySocket);
  else expect({ ...byHandle, length }).toEqual({ ...bySocket, fields, length: lengthOf(bySocket.body) });
  return bySocket;
}
const lengthOf = (body: string) => String(Buffer.byteLength(body));

const text = (body: string) =>
  new RpcResponse({ status: 200, fields: { 'x-own': 'own' }, body: Buffer.from(body) });

/** Answers with the method and what it is asked for in the query: an error, or a stream of 5 bytes, whole or cut. */
async function answer({ method, url, headers }: RpcRequest): Promise<RpcResponse> {
  const [, how = ''] = url.split('?');
  if (how === 'error') throw new Error('a secret');
  if (!how.startsWith('stream')) return text(`${method} ${headers.get('X-Own') ?? ''}`);
  const isCut = how.includes('cut');
  const pieces = new ReadableStream<Uint8Array>({
    pull(controller) {
      controller.enqueue(Buffer.from('some'));
      controller.enqueue(Buffer.from('1'));
      if (isCut) controller.error(new Error('cut'));
      else controller.close();
    },
  });
  const length = how.includes('length') ? 5 : undefined;
  return new RpcResponse({ ...text(''), body: streamBodyOf(pieces), length });
}

const open: { stop(isNow?: boolean): Promise<unknown> }[] = [];
/** Stops what a test has served. */
export async function stopAll(): Promise<void> {
  for (const each of open.splice(0)) await each.stop(true);
}

type Plug = (app: Elysia) => unknown;

/** The app of the gateway on a port: hooks stand before its routes, other routes behind them. */
export function serve(
  routes: Plug = () => undefined,
  hooks: Plug = () => undefined,
  onListening?: Parameters<Elysia['listen']>[1],
) {
  const listener = new SocketListener(testConfig({}).gateway, { clock: systemClock, shared: false });
  const adapter = createAdapter(listener);
  const app = new Elysia({ adapter, strictPath: true });
  hooks(app);
  const health = () => ({ ok: true, sentence: 'ok' });
  app.use(createApp({ answer, health }, adapter));
  routes(app);
  app.listen(0, onListening);
  open.push(app);
  return { app, url: app.server?.url ?? new URL('http://none') };
}
