import { randomFillSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createGateway } from '../../gateway/compose.ts';
import { LEDGER_MIGRATIONS } from '../../gateway/ledger.ts';
import { atEndOfTurn } from '../../gateway/upstream/turns.ts';
import { systemClock } from '../../shared/clock.ts';
import { ACCOUNTS_MIGRATIONS } from '../../shared/keys/schema.ts';
import { addKey, JSON_HEADERS, opened, silentLog, testConfig } from '../../test/started/gateway.ts';

// The processes of bare.ts: `relays.ts NAME BACKEND_PORT KEYS_FILE` serves a prototype and prints its port, `relays.ts loop SECONDS`
// prints CPU microseconds a call of the gateway without sockets, second by second.

type Bytes = Uint8Array<ArrayBuffer>;
type OnReply = (body: Bytes) => void;
type Send = (body: Uint8Array, onReply: OnReply) => void;

const RESULT = `{"context":{"apiVersion":"2.2.7","slot":368000000},"value":"${'A'.repeat(360)}"}`;
const ANSWER = Buffer.from(`{"jsonrpc":"2.0","result":${RESULT},"id":1}\n`);
const HEAD = Buffer.from('POST / HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: ');
const END_OF_HEAD = Buffer.from('\r\n\r\n');
const LENGTH = Buffer.from('content-length: ');
const JSON_TYPE = 'application/json; charset=utf-8';
const MESSAGE_BYTES_MAX = 1_048_576;
const BEFORE_BODY = ['content-type', 'content-encoding', 'content-length'];
const AFTER_BODY = ['x-token', 'authorization', 'accept-encoding', 'origin'];

/** Counts a call of the key that it carries. */
type CountCall = (key: string | null) => void;

/** Answers with what the backend says, or with ANSWER where nothing is sent. */
function handlerOf(readsBody: boolean, hasFields: boolean, send: Send | undefined, count?: CountCall) {
  let calls = 0;
  const answered = (bytes: Bytes) => {
    const two = { 'content-type': JSON_TYPE, 'x-credits-cost': '1' };
    if (!hasFields) return new Response(bytes, { headers: two });
    const rate = { ratelimit: `"calls";r=${calls++};t=1`, 'ratelimit-policy': '"calls";q=200;w=2' };
    return new Response(bytes, { headers: { ...two, ...rate } });
  };
  return function handle(request: Request): Response | Promise<Response> {
    const { headers } = request;
    if (hasFields) for (const name of BEFORE_BODY) headers.get(name);
    if (!readsBody) return answered(ANSWER);
    return request.arrayBuffer().then((body) => {
      if (hasFields) for (const name of AFTER_BODY) headers.get(name);
      if (hasFields) request.url.indexOf('?');
      count?.(headers.get('x-token'));
      if (send === undefined) return answered(ANSWER);
      return new Promise((resolve) => send(new Uint8Array(body), (bytes) => resolve(answered(bytes))));
    });
  };
}

/** A connection to the backend, whose replies come in the order of its requests. */
class Connection {
  readonly waiting: OnReply[] = [];
  readonly message = Buffer.allocUnsafe(MESSAGE_BYTES_MAX);
  length = 0;
  socket: Bun.Socket<Connection> | undefined;
  #next = 0;
  #rest: Buffer = Buffer.alloc(0);

  async open(port: number): Promise<this> {
    const socket = { data: (_: unknown, bytes: Buffer) => this.#onData(bytes) };
    this.socket = await Bun.connect<Connection>({ hostname: '127.0.0.1', port, data: this, socket });
    this.socket.setNoDelay(true);
    return this;
  }

  add(body: Uint8Array, onReply: OnReply): void {
    this.waiting.push(onReply);
    const { message } = this;
    message.set(HEAD, this.length);
    this.length += HEAD.length;
    this.length += message.write(String(body.length), this.length, 'latin1');
    message.set(END_OF_HEAD, this.length);
    message.set(body, this.length + END_OF_HEAD.length);
    this.length += END_OF_HEAD.length + body.length;
  }

  flush(): void {
    const { length } = this;
    this.length = 0;
    if (length > 0 && this.socket?.write(this.message, 0, length) !== length)
      throw new Error('a short write');
  }

  #onData(bytes: Buffer): void {
    const all = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    let at = 0;
    while (at < all.length) {
      const bodyAt = all.indexOf(END_OF_HEAD, at) + END_OF_HEAD.length;
      let length = 0;
      for (let i = all.indexOf(LENGTH, at) + LENGTH.length; all[i] !== END_OF_HEAD[0]; i++) {
        if (i >= all.length) break;
        length = length * 10 + (all[i] ?? 0) - 0x30;
      }
      if (bodyAt < END_OF_HEAD.length || bodyAt + length > all.length) break;
      at = bodyAt + length;
      const onReply = this.waiting[this.#next++];
      if (this.#next === this.waiting.length) this.#next = this.waiting.length = 0;
      onReply?.(all.subarray(bodyAt, at) as Bytes); // a read is never over shared memory
    }
    this.#rest = all.subarray(at);
  }
}

/** A connection carries one exchange at a time; one more is opened when none is idle. `later` says when it writes and answers. */
function oneExchange(port: number, later: (act: () => void) => void): Send {
  const idle: Connection[] = [];
  return function send(body, onReply) {
    const start = (connection: Connection) => {
      connection.add(body, (bytes) => {
        idle.push(connection);
        later(() => onReply(bytes));
      });
      later(() => connection.flush());
    };
    const reused = idle.pop();
    if (reused !== undefined) start(reused);
    else void new Connection().open(port).then(start);
  };
}

/** The calls of one turn of the event loop go to `count` connections in one write each. */
async function pipelined(port: number, count: number): Promise<Send> {
  const connections = await Promise.all(Array.from({ length: count }, () => new Connection().open(port)));
  let sent = 0;
  let isDue = false;
  const flush = () => {
    isDue = false;
    for (const connection of connections) connection.flush();
  };
  return function send(body, onReply) {
    connections[sent++ % count]?.add(body, onReply);
    if (!isDue) setImmediate(flush);
    isDue = true;
  };
}

/** A key's bucket and its calls, in one object. */
type Counted = { tokens: number; atMs: number; calls: number; bytes: number };

/** The least that limits and usage can do: one look into a map by the key's text, one object to change. */
function countedKeys(path: string): Map<string, Counted> {
  const keys = readFileSync(path, 'utf8').matchAll(/^\S+/gm);
  return new Map(Array.from(keys, ([key]) => [key, { tokens: 0, atMs: 0, calls: 0, bytes: 0 }]));
}

function countIn(counted: Map<string, Counted>): CountCall {
  return function countCall(key) {
    const found = counted.get(key ?? '');
    if (found === undefined) throw new Error('a call without a key');
    const nowMs = systemClock.monotonic();
    found.tokens += nowMs - found.atMs - 1;
    found.atMs = nowMs;
    found.calls++;
    found.bytes += ANSWER.length;
  };
}

/** Adds once a second what was counted to a table of a file, as usage is: 500 rows a transaction. */
async function writeEverySecond(counted: Map<string, Counted>, path: string): Promise<never> {
  const ledger = opened(path, {
    counts: 'CREATE TABLE counts (key TEXT PRIMARY KEY, calls INTEGER, bytes INTEGER) STRICT, WITHOUT ROWID;',
  });
  const add = ledger.prepare<null, [string, number, number]>(
    'INSERT INTO counts VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET calls = calls + excluded.calls, bytes = bytes + excluded.bytes',
  );
  const addAll = ledger.transaction((some: readonly (readonly [string, Counted])[]) => {
    for (const [key, one] of some) {
      add.run(key, one.calls, one.bytes);
      one.calls = one.bytes = 0;
    }
  });
  const { signal } = new AbortController(); // to the end of the process
  while (true) {
    await systemClock.sleep(1_000, signal);
    const some = [...counted].filter(([, { calls }]) => calls > 0);
    for (let at = 0; at < some.length; at += 500) addAll.immediate(some.slice(at, at + 500));
  }
}

async function serve(name: string, port: number, keysPath: string): Promise<void> {
  const count = Number(/^pipelined-(\d+)$/.exec(name)?.[1] ?? 0);
  const isLate = name.startsWith('relay-turn-');
  const later = (endTurn: () => void) => (isLate ? atEndOfTurn({ endTurn }) : endTurn());
  const relay = name.startsWith('relay') ? oneExchange(port, later) : undefined;
  const send = count > 0 ? await pipelined(port, count) : relay;
  const counted = /-(?:keys|written)$/.test(name) ? countedKeys(keysPath) : undefined;
  if (counted !== undefined && name.endsWith('written'))
    void writeEverySecond(counted, `${keysPath}.${name}.db`);
  const countCall = counted === undefined ? undefined : countIn(counted);
  const hasFields = isLate || count > 0 || name.endsWith('fields');
  const handle = handlerOf(name !== 'constant', hasFields, send, countCall);
  const routes = { '/': { POST: handle } };
  console.log(Bun.serve({ hostname: '127.0.0.1', port: 0, development: false, routes }).port);
}

const LOOPED = 64;
const ID = ',"id":';
/** The id that the gateway gives a call, in its quotes. */
const ID_BYTES = 18;
const REPLIED = `{"jsonrpc":"2.0","result":${RESULT}${ID}${' '.repeat(ID_BYTES)}}\n`;
const REPLY = Buffer.from(
  `HTTP/1.1 200 OK\r\ncontent-type: ${JSON_TYPE}\r\ncontent-length: ${REPLIED.length}\r\n\r\n${REPLIED}`,
);
const REPLY_ID_AT = REPLY.length - ID_BYTES - '}\n'.length;

/** Sockets that answer by themselves, with what the gateway's client uses of one. */
function connectScripted({ data, socket: handler }: Bun.TCPSocketConnectOptions<unknown>) {
  const socket = {
    data,
    setNoDelay: () => true,
    terminate() {},
    write(message: Buffer, from: number, length: number) {
      const reply = Buffer.from(REPLY);
      const idAt = message.indexOf(ID, from) + ID.length;
      message.copy(reply, REPLY_ID_AT, idAt, idAt + ID_BYTES);
      queueMicrotask(() => handler.data?.(socket as never, reply)); // as above
      return length;
    },
  };
  void handler.open?.(socket as never); // as above
  return Promise.resolve(socket);
}

async function timeLoop(seconds: number): Promise<void> {
  Bun.connect = connectScripted as never; // as above
  const config = testConfig({
    backends: [{ name: 'one', url: 'http://127.0.0.1:1' }],
    plans: { bench: { rps: 10_000_000, burst: 10_000_000 } },
  });
  const accounts = opened(':memory:', ACCOUNTS_MIGRATIONS);
  const ledger = opened(':memory:', LEDGER_MIGRATIONS);
  const own = {
    node: 'one',
    clock: systemClock,
    log: silentLog(),
    random: () => 0.5,
    fillRandom: randomFillSync,
  };
  const gateway = createGateway({ config, accounts, ledger, ...own });
  const token = addKey(accounts, 'bench');
  const requests = Array.from({ length: LOOPED }, (_, i) => {
    const params = [
      `${i + 11}`.replace('0', 'z').padEnd(44, '1'),
      { encoding: 'base64', commitment: 'confirmed' },
    ];
    const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'getAccountInfo', params }));
    const headers = new Headers({ ...JSON_HEADERS, 'content-length': String(body.length), 'x-token': token });
    const readBody = () => ({ kind: 'body', bytes: Buffer.from(body) }) as const;
    const { signal } = new AbortController();
    const onSent = (then: () => void) => then();
    return { method: 'POST', url: '/', headers, address: undefined, signal, onSent, readBody };
  });
  for (let second = 0; second < seconds; second++) {
    const before = process.cpuUsage();
    const endMs = systemClock.monotonic() + 1_000;
    let calls = 0;
    for (; systemClock.monotonic() < endMs; calls += LOOPED) {
      const answers = requests.map((one) => gateway.answer(one));
      for (const answer of answers) if ((await answer).status !== 200) throw new Error('a call was refused');
      await new Promise((resolve) => setImmediate(resolve));
    }
    const { user, system } = process.cpuUsage(before);
    console.log((user + system) / calls);
  }
  process.exit(0);
}

const [name = '', number, keysPath = ''] = process.argv.slice(2);
await (name === 'loop' ? timeLoop(Number(number)) : serve(name, Number(number), keysPath));
