import { createHttpClient, type HttpClient } from '../../gateway/upstream/http-client.ts';
import {
  Connection,
  type ExchangeHandler,
  type HttpReply,
  type NoReply,
} from '../../gateway/upstream/http-connection.ts';
import type { ResponseHead } from '../../gateway/http/response-head.ts';
import { systemClock } from '../../shared/clock.ts';
import { createVirtualClock } from '../gateway/virtual-clock.ts';
import { type Count, HANG_MS, type Random, type Report, runTimed, turns, until } from './episodes.ts';
import { type Case, caseOf, type Expected, expectedOf, plainReply, surplusOf } from './http-replies.ts';

/** Episodes at once, each with a client, a server and a clock of its own. */
const LANES = 8;
const DUE_MS = 1_000;

/** The HTTP client of backends against a server of pseudo-random replies. */
export async function fuzz(seed: number, seconds: number, report?: Report, signal?: AbortSignal) {
  const reads = timedReads();
  const found = await runTimed({ seed, seconds, lanes: LANES, run: runEpisode, report, signal }, reads);
  reads.stop();
  return found;
}

/** Measures what a connection does with each read, by the shorter of time and CPU time: other processes take the one, other threads the other. */
function timedReads() {
  const { onData } = Connection.prototype;
  let longestMs = 0;
  Connection.prototype.onData = function (bytes) {
    const [startedMs, before] = [systemClock.monotonic(), process.cpuUsage()];
    onData.call(this, bytes);
    const ms = Math.min(systemClock.monotonic() - startedMs, process.cpuUsage(before).user / 1_000);
    longestMs = Math.max(longestMs, ms);
  };
  return {
    takeLongestMs() {
      const taken = longestMs;
      longestMs = 0;
      return taken;
    },
    stop: () => void (Connection.prototype.onData = onData),
  };
}

/** One request, its reply and how both are handled. */
type Exchange = {
  readonly id: string;
  reply: Case;
  expected: Expected;
  readonly mode: 'small' | 'handler' | 'send' | 'fresh';
  readonly reader: 'at once' | 'slow' | 'late' | 'held' | 'failing' | 'cancel' | 'cancel-midway' | 'abort';
  readonly requestBytes: number;
  /** The connections that carried it: two when a first one ended without a byte. */
  readonly peers: Peer[];
  /** Bytes of the reply that the server's kernel took. */
  sentBytes: number;
  isDelivered: boolean;
  readonly outcomes: string[];
  observed: Observed | undefined;
};

type Observed =
  | Readonly<{
      kind: 'complete' | 'cut';
      body: Buffer;
      status: number;
      /** Not known of a small reply. */
      head: Pick<ResponseHead, 'isJson' | 'encoding'> | undefined;
    }>
  | Readonly<{ kind: 'none'; stale: boolean; reason: string }>;

/** The server's side of one connection. */
type Peer = {
  socket: Bun.Socket<Peer>;
  readonly exchanges: Exchange[];
  request: string;
  requestBytes: number;
  isOpen: boolean;
  isEnded: boolean;
  wasGreeted: boolean;
};

/** A few steps of one client: exchanges that run at once, then what the server does with idle connections. */
async function runEpisode(random: Random, count: Count): Promise<void> {
  const { clock, advance } = createVirtualClock();
  const exchanges: Exchange[] = [];
  const server = startServer(exchanges);
  const client = createHttpClient({
    url: new URL(server.url),
    codings: [],
    headers: new Map(),
    clock,
    idleMs: DUE_MS,
  });
  try {
    for (let step = random.below(5); step >= 0; step--) {
      const started = Array.from({ length: random.one([1, 1, 1, 2, 4]) }, (_, i) =>
        exchangeOf(random, `${step}.${i}`),
      );
      exchanges.push(...started);
      server.greet(started.length === 1 && random.below(12) === 0 ? started[0] : undefined);
      for (const exchange of started) start(client, clock.monotonic(), exchange, random);
      await settled(started, client, advance);
      await turns(2);
      for (const exchange of started) {
        count(check(exchange));
        await until(
          () => isOpenAsExpected(exchange),
          () =>
            `${textOf(exchange)}\n  its connection is open and may carry no other request, or is closed and may`,
        );
      }
      server.check();
      await pokeIdle(random, server, count);
    }
    client.close();
    await until(
      () => server.peers.every(({ isOpen }) => !isOpen),
      () => 'a connection is left after close()',
    );
    await turns(2);
    exchanges.forEach(check);
    server.check();
  } finally {
    client.close();
    server.stop();
  }
}

function exchangeOf(random: Random, id: string): Exchange {
  const reply = caseOf(random, id);
  return {
    id,
    reply,
    expected: expectedOf(reply.wire, reply.end),
    mode: random.one(['small', 'small', 'handler', 'send', 'send', 'fresh']),
    reader: random.one([
      ...(['at once', 'at once', 'at once', 'slow', 'slow', 'late', 'held'] as const),
      ...(['failing', 'cancel', 'cancel-midway', 'abort'] as const),
    ]),
    requestBytes: random.below(60) === 0 ? 6_000_000 : random.below(300) + 20,
    peers: [],
    sentBytes: 0,
    isDelivered: false,
    outcomes: [],
    observed: undefined,
  };
}

/** Sends the request and reads what comes, as the exchange's mode and reader have it. */
function start(client: HttpClient, nowMs: number, exchange: Exchange, random: Random): void {
  const { id, mode, outcomes, reader } = exchange;
  const body = Buffer.alloc(exchange.requestBytes, ' ');
  body.write(`"${id}"`);
  const onOutcome = (outcome: HttpReply | NoReply) => {
    outcomes.push(outcome.kind);
    if (outcome.kind === 'reply') return void read(exchange, outcome, random);
    const stale = outcome.kind === 'no-answer' && outcome.stale === true;
    exchange.observed = { kind: 'none', stale, reason: outcome.reason };
  };
  const onSmallReply = (bytes: Buffer) => {
    outcomes.push('small');
    exchange.observed = { kind: 'complete', body: bytes, status: 200, head: undefined };
  };
  if (mode === 'small' || mode === 'handler') {
    const message = Buffer.concat([client.head, Buffer.from(`${body.length}\r\n\r\n`), body]);
    const handler: ExchangeHandler = mode === 'small' ? { onSmallReply, onOutcome } : { onOutcome };
    client.start(message, message.length, nowMs, nowMs + DUE_MS, handler);
    message.fill('X');
    return;
  }
  const leaving = new AbortController();
  const request = {
    body,
    dueMs: DUE_MS,
    kind: mode === 'fresh' ? 'write' : 'light',
  } as const;
  void client.send(request, leaving.signal).then(onOutcome);
  if (reader === 'abort') void turns(random.below(12)).then(() => leaving.abort());
}

async function read(exchange: Exchange, { head, body }: HttpReply, random: Random): Promise<void> {
  const { reader, outcomes } = exchange;
  const pieces: Buffer[] = [];
  let left = random.below(exchange.expected.body.length + 1);
  if (reader === 'late') await turns(random.below(6));
  if (reader === 'held')
    for (let n = random.below(6); n > 0; n--) await Promise.race([body.more(), turns(20)]);
  if (reader === 'cancel') body.cancel();
  const end = await body.pipe((piece) => {
    pieces.push(Buffer.from(piece));
    left -= piece.length;
    if (reader === 'cancel-midway' && left < 0) body.cancel();
    if (reader === 'slow') return turns(random.below(4));
    return reader === 'failing' ? Promise.reject(new Error('the reader failed')) : undefined;
  });
  const bytes = Buffer.concat(pieces);
  const isCounted = end.bytes === bytes.length || reader.startsWith('cancel');
  outcomes.push(isCounted ? end.kind : `${end.kind} with ${end.bytes} bytes, of which ${bytes.length} came`);
  exchange.observed = { kind: end.kind, body: bytes, status: head.status, head };
}

/** Waits for every outcome; by the clock for those of replies that are not whole, once all of them has been sent. */
async function settled(
  started: readonly Exchange[],
  client: HttpClient,
  advance: (ms: number) => void,
): Promise<void> {
  const isCertain = ({ expected, mode }: Exchange) =>
    expected.kind === 'complete' && !expected.either && mode !== 'fresh';
  const startedMs = systemClock.monotonic();
  for (let turn = 1; ; turn++) {
    const open = started.filter(({ observed }) => observed === undefined);
    const [first] = open;
    if (first === undefined) return;
    await turns(1);
    if (systemClock.monotonic() - startedMs > HANG_MS)
      throw new Error(`${open.map(textOf).join('\n')}\n  it does not end`);
    if (turn % 20 > 0 || open.some((exchange) => isCertain(exchange) || !exchange.isDelivered)) continue;
    advance(DUE_MS + 1);
    client.tick();
  }
}

/** Throws unless what was seen is what the reference allows; gives a name for it. */
function check(exchange: Exchange): string {
  const { expected, mode, observed, outcomes, peers, reader } = exchange;
  const fail = (what: string): never => {
    throw new Error(`${textOf(exchange)}\n  ${what}`);
  };
  if (observed === undefined) return fail('no outcome');
  if (!/^(no-answer|unsent|small|reply,(complete|cut))$/.test(outcomes.join()))
    fail(`outcomes ${outcomes.join()}`);
  const wasGreeted = peers.some((peer) => peer.wasGreeted);
  const isAborted = reader === 'abort' && (mode === 'send' || mode === 'fresh');
  if (observed.kind === 'none') {
    const { stale } = observed;
    if (stale && exchange.sentBytes > 0 && exchange.reply.end !== 'reset' && !wasGreeted) fail('it is stale');
    // A connection that ended while it was idle: only `send` may try another, and only when that harms nothing.
    const isUnseen = stale && peers.length === 0 && mode !== 'send';
    if (!(expected.either || isAborted || wasGreeted || isUnseen)) fail('no answer');
    return stale ? 'stale' : 'no answer';
  }
  const { body, head, kind, status } = observed;
  if (peers.length === 0) fail('an answer to no request');
  if (status !== expected.status) fail(`status ${status}`);
  const isJson = /json/i.test(expected.headers.get('content-type') ?? '');
  if (
    head !== undefined &&
    (head.isJson !== isJson || head.encoding !== expected.headers.get('content-encoding'))
  )
    fail(`JSON ${head.isJson}, encoding ${head.encoding}`);
  if (!expected.body.subarray(0, body.length).equals(body))
    fail(`other bytes: ${body.toString('latin1').slice(0, 200)}`);
  if (kind === 'complete') {
    if (expected.kind === 'broken') fail('it is not complete');
    if (body.length < expected.body.length) fail(`only ${body.length} bytes`);
  } else {
    // Time goes by for a fresh one while its reader is behind, who is cut then.
    const mayBeUnread = mode === 'fresh' && reader === 'slow';
    if (!(expected.either || wasGreeted || mayBeUnread || reader.startsWith('cancel'))) fail('it is cut');
  }
  return outcomes[0] === 'small' ? 'small' : kind;
}

/** Whether the exchange's connections are open when they may carry another request, and only then. */
function isOpenAsExpected({ expected, observed, peers, reader, reply, requestBytes }: Exchange): boolean {
  const isKept = observed?.kind === 'complete' && expected.reuse && reply.end === 'keep';
  if (!isKept) return peers.every(({ isOpen }) => !isOpen);
  const isWritten = requestBytes < 1_000 && !peers.some(({ wasGreeted }) => wasGreeted);
  // One that came whole and is cancelled all the same may close its connection.
  return !isWritten || reader.startsWith('cancel') || peers.at(-1)?.isOpen === true;
}

/** Bytes on a connection that carries nothing, which close it, or its end, which the next request may not have seen. */
async function pokeIdle(random: Random, { peers }: Server, count: Count): Promise<void> {
  const idle = peers.filter(({ isOpen }) => isOpen);
  if (idle.length === 0 || random.below(3) > 0) return;
  const peer = random.one(idle);
  if (random.below(2) === 0) {
    count('end while idle');
    peer.isEnded = true;
    return random.below(2) === 0 ? void peer.socket.end() : peer.socket.terminate();
  }
  count('bytes while idle');
  peer.socket.write(surplusOf(random));
  await until(
    () => !peer.isOpen,
    () => 'a connection that got bytes while it was idle stays open',
  );
}

type Server = ReturnType<typeof startServer>;

/** Answers each request by the exchange that its body names. */
function startServer(exchanges: readonly Exchange[]) {
  const peers: Peer[] = [];
  let greeted: Exchange | undefined;
  let problem: string | undefined;

  function onRequest(peer: Peer, exchange: Exchange | undefined): void {
    if (exchange === undefined) return void (problem ??= `a request that is no exchange's: ${peer.request}`);
    if (peer.exchanges.includes(exchange)) return; // it was answered before
    greeted = undefined;
    const last = peer.exchanges.at(-1);
    const { expected, mode, reply, sentBytes } = exchange;
    if (last !== undefined && !(last.expected.reuse && last.observed?.kind === 'complete'))
      problem ??= `${textOf(last)}\n  its connection carries another request`;
    if (exchange.peers.length > 0) {
      const mayRepeat =
        mode === 'send' && exchange.peers.length === 1 && exchange.peers[0]?.exchanges[0] !== exchange;
      if (!mayRepeat || (sentBytes > 0 && reply.end !== 'reset'))
        problem ??= `${textOf(exchange)}\n  it is sent again`;
      exchange.reply = {
        wire: plainReply(Buffer.from(`"again ${exchange.id}"`)),
        splits: [],
        gap: 0,
        end: 'keep',
      };
      exchange.expected = { ...expectedOf(exchange.reply.wire, 'keep'), either: expected.kind === 'broken' };
      exchange.isDelivered = false;
    }
    void deliver(peer, exchange);
  }

  const listener = Bun.listen<Peer>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open(socket) {
        socket.setNoDelay(true);
        const state = { request: '', requestBytes: 0, isOpen: true, isEnded: false };
        socket.data = { socket, exchanges: [], ...state, wasGreeted: greeted !== undefined };
        peers.push(socket.data);
        if (greeted !== undefined) void deliver(socket.data, greeted);
        greeted = undefined;
      },
      data(socket, bytes) {
        const peer = socket.data;
        if (peer.isEnded) return;
        if (peer.request.length < 1_000) peer.request += bytes.toString('latin1');
        peer.requestBytes += bytes.length;
        const [head, length] = /^[^]*?content-length: (\d+)\r\n\r\n/.exec(peer.request) ?? [];
        const left = head === undefined ? 1 : head.length + Number(length) - peer.requestBytes;
        if (left > 0) return;
        if (left < 0) problem ??= `two requests at once: ${peer.request}`;
        const id = /"(.*?)"/.exec(peer.request)?.[1];
        onRequest(
          peer,
          exchanges.find((exchange) => exchange.id === id),
        );
        [peer.request, peer.requestBytes] = ['', 0];
      },
      close: ({ data }) => void (data.isOpen = false),
    },
  });
  return {
    url: `http://127.0.0.1:${listener.port}/`,
    peers,
    /** Answers the exchange as soon as a connection opens. */
    greet: (exchange: Exchange | undefined) => void (greeted = exchange),
    check() {
      if (problem !== undefined) throw new Error(problem);
    },
    stop: () => listener.stop(true),
  };
}

async function deliver(peer: Peer, exchange: Exchange): Promise<void> {
  peer.exchanges.push(exchange);
  exchange.peers.push(peer);
  const { wire, splits, gap, end } = exchange.reply;
  let at = 0;
  for (const split of [...splits, wire.length]) {
    while (at < split && peer.isOpen) {
      const written = Math.max(0, peer.socket.write(wire, at, split - at));
      exchange.sentBytes += written;
      at += written;
      if (at < split) await turns(1);
    }
    await turns(gap);
  }
  if (peer.isOpen && end !== 'keep') {
    peer.isEnded = true;
    if (end === 'fin') peer.socket.end();
    else peer.socket.terminate();
  }
  exchange.isDelivered = true;
}

/** An exchange as a finding prints it. */
function textOf({
  reply,
  expected,
  mode,
  reader,
  requestBytes,
  peers,
  sentBytes,
  outcomes,
  observed,
}: Exchange): string {
  const { wire, splits, gap, end } = reply;
  const shown = (text: string) => JSON.stringify(text.length > 1_500 ? `${text.slice(0, 1_500)}…` : text);
  const seen =
    observed !== undefined && 'body' in observed
      ? `${observed.kind}, ${observed.body.length} bytes`
      : observed?.reason;
  return [
    `${mode}, reader ${reader}, request of ${requestBytes} bytes, on ${peers.length} connections, greeted ${peers.some((peer) => peer.wasGreeted)}`,
    `  reply of ${wire.length} bytes, ${sentBytes} sent: ${shown(wire.toString('latin1'))}`,
    `  split at ${splits.slice(0, 30).join()}, gap ${gap}, then ${end}`,
    `  expected ${expected.kind}${expected.either ? ' or refused' : ''}, ${expected.body.length} bytes, reuse ${expected.reuse}`,
    `  observed ${seen}; outcomes ${outcomes.join()}`,
  ].join('\n');
}
