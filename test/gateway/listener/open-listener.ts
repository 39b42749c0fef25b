import { afterEach } from 'bun:test';
import { type RpcRequest, RpcResponse } from '../../../gateway/listener/rpc.ts';
import { listen } from '../../../gateway/server.ts';
import type { StreamBody } from '../../../gateway/http/stream-body.ts';
import { type Clock, systemClock } from '../../../shared/clock.ts';
import { testConfig } from '../../started/gateway.ts';

export type Answer = (request: RpcRequest) => RpcResponse | Promise<RpcResponse>;

/** The listener of a started gateway, without the gateway. */
export type Opened = Extract<ReturnType<typeof listen>, { kind: 'listening' }>;

const opened: Opened[] = [];
afterEach(async () => {
  for (const each of opened.splice(0)) await each.close(0, 0);
});

/** Opens a listener, until the test's end, whose `POST /` is answered by `answer`. */
export function open(
  answer: Answer,
  clock: Clock = systemClock,
  gateway: object = {},
  beat?: () => void,
): Opened {
  const health = () => ({ ok: true, sentence: 'ok' });
  const listening = listen(
    testConfig({ gateway }).gateway,
    { answer, health },
    { clock, shared: false, beat },
  );
  if (listening.kind === 'refused') throw new Error(listening.sentence);
  opened.push(listening);
  return listening;
}

export const text = (body: string, status = 200): RpcResponse =>
  new RpcResponse({ status, fields: {}, body: Buffer.from(body) });
export const get = (path: string, head = '') => `GET ${path} HTTP/1.1\r\nhost: a\r\n${head}\r\n`;
export const post = (body: string, head = '') =>
  `POST / HTTP/1.1\r\nhost: a\r\ncontent-length: ${body.length}\r\n${head}\r\n${body}`;

/** A stream that gives `first`, and more from `goOn` on, until it is cancelled. */
export function heldStream() {
  const next = Promise.withResolvers<void>();
  const cancelled = Promise.withResolvers<void>();
  const body: StreamBody = {
    cancel: () => cancelled.resolve(),
    async pipe(write) {
      void write(Buffer.from('first'));
      await next.promise;
      for (let i = 0; i < 3; i++) void write(Buffer.from('more'));
      await cancelled.promise;
      return { kind: 'cut', reason: 'cancelled', bytes: 5 };
    },
  };
  return { body, goOn: next.resolve, cancelled: cancelled.promise };
}

/** The statuses of answers, in their order. */
export const statusesIn = (answers: string) =>
  [...answers.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, code]) => Number(code));

/** Lets sockets and turns of the loop do what they have begun. */
export async function turns(count = 20): Promise<void> {
  for (let i = 0; i < count; i++) await Bun.sleep(1); // a turn of the loop with its sockets is the event awaited
}
