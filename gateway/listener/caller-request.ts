import type { RequestHead } from '../http/request-head.ts';
import type { RequestBody, RpcRequest } from './rpc.ts';

/**
 * The origin of every `url`, whatever the caller named: Elysia looks for the path behind the eleventh character. The field
 * `host` has what the caller named.
 */
const ORIGIN = 'http://localhost';
const ROOT = `${ORIGIN}/`;
/** The part behind the origin of a target that is a whole URL (RFC 9112 3.2.2). */
const BEHIND_ORIGIN = /^https?:\/\/[^/?]*(.*)$/i;

/** More is not read for a route that reads its body by the methods of `Request`. */
const WEB_BODY_BYTES_MAX = 1_048_576;

/**
 * A request of a connection as Elysia and its hooks know one. It is light: a `Request` is made of it only for a route that
 * reads the body by the methods of one.
 */
export abstract class CallerRequest implements RpcRequest {
  abstract readonly headers: RequestHead;
  abstract readonly peer: Bun.SocketAddress | null;
  abstract readonly signal: AbortSignal;
  abstract onSent(then: () => void): void;
  abstract readBody(bytesMax: number, holder?: number): RequestBody | Promise<RequestBody>;
  #web: Request | undefined;

  get method(): string {
    return this.headers.method;
  }

  get url(): string {
    const { target } = this.headers;
    if (target === '/') return ROOT;
    if (target.startsWith('/')) return ORIGIN + target;
    const [, rest = ''] = BEHIND_ORIGIN.exec(target) ?? [];
    return rest.startsWith('/') ? ORIGIN + rest : ROOT + rest;
  }

  get address(): string | undefined {
    return this.peer?.address;
  }

  get body(): ReadableStream<Uint8Array> | null {
    return this.web.body;
  }

  get bodyUsed(): boolean {
    return this.#web?.bodyUsed ?? false;
  }

  json(): Promise<unknown> {
    return this.web.json();
  }

  text(): Promise<string> {
    return this.web.text();
  }

  arrayBuffer(): Promise<ArrayBuffer> {
    return this.web.arrayBuffer();
  }

  bytes(): Promise<Uint8Array> {
    return this.arrayBuffer().then((buffer) => new Uint8Array(buffer));
  }

  blob(): Promise<Blob> {
    return this.web.blob();
  }

  formData() {
    return this.web.formData();
  }

  clone() {
    return this.web.clone();
  }

  get web(): Request {
    if (this.#web !== undefined) return this.#web;
    const { method, url, signal } = this;
    const hasBody = this.headers.framing !== 0 && method !== 'GET' && method !== 'HEAD';
    const init = { method, headers: [...this.headers], signal, body: hasBody ? this.#stream() : null };
    return (this.#web = new Request(url, init));
  }

  #stream(): ReadableStream<Uint8Array> {
    const read = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
      const body = await this.readBody(WEB_BODY_BYTES_MAX);
      if (body.kind !== 'body') return controller.error(new Error(body.kind));
      if (body.bytes.length > 0) controller.enqueue(body.bytes);
      controller.close();
    };
    return new ReadableStream({ pull: read }, { highWaterMark: 0 });
  }
}
