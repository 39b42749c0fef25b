import { isAt, QUOTE } from '../json/scan.ts';
import type { Clock } from '../../shared/clock.ts';
import { deadlineMsOf } from '../methods/table.ts';
import type { Call } from '../request/envelope.ts';
import { type Backend, leaveOnce } from './backend.ts';
import type { CallContext, Forward, ForwardEvents, Reply } from './forward.ts';
import type { Connection, ExchangeHandler, HttpReply, NoReply } from './http-connection.ts';
import { type ResponseStart, judgeWhole } from './response-reader.ts';
import type { Failure } from './failure.ts';
import type { ForwardRoute } from './router.ts';
import { type Pool, type RetryBudget, type ReadRequirement, readRequirementOf } from './selection.ts';
import { atEndOfTurn } from './turns.ts';

/**
 * The straight way of a small read: one attempt at the account's preferred backend, answered from one read of its
 * socket. Whatever else happens is for `forward`, which goes on with the outcome. Identical reads that are under way
 * share one attempt: each caller gets its own id. `onReply` is called once.
 */
export type Direct = (call: Call, route: ForwardRoute, context: CallContext, onReply: OnReply) => void;

type OnReply = (reply: Reply) => void;

type Parts = Readonly<{
  clock: Clock;
  idleMs: number;
  pool: Pool;
  budget: RetryBudget;
  forward: Forward;
  onResponseStart: ForwardEvents['onResponseStart'];
}>;

/** A read joins one that is at most so old: what it gets is no older than that. */
const SHARED_MS = 100;
/** Longer parameters are lists of accounts, whose answers are rarely small. */
const SHARED_PARAMS_BYTES_MAX = 1_024;
/** A power of two, above the number of calls that are under way at once in most processes. */
const SHARED_PLACES = 4_096;
/** Longer requests have a buffer of their own. */
const MESSAGE_BYTES_MAX = 65_536;

export function createDirect(parts: Parts): Direct {
  const underWay = Array.from<DirectCall | undefined>({ length: SHARED_PLACES });
  const way: Way = { ...parts, underWay, message: Buffer.allocUnsafe(MESSAGE_BYTES_MAX) };

  return function direct(call, route, context, onReply) {
    const one = new DirectCall(way, call, route, context, onReply);
    const { params } = call;
    if (!route.method.shared || (params !== undefined && params.length > SHARED_PARAMS_BYTES_MAX))
      return one.start();
    const place = hashOf(params ?? NOTHING, route.seed) & (SHARED_PLACES - 1);
    const leader = underWay[place];
    if (leader === undefined) {
      one.place = place;
      underWay[place] = one;
      return one.start();
    }
    if (one.startedMs - leader.startedMs <= SHARED_MS && isSameRead(one, leader)) {
      // What this caller, or any other, has been shown of the node before it joined.
      const tip = leader.backend?.slots.tip ?? NO_TIP;
      if (one.requirement.commitment !== undefined)
        one.slotMin = Math.max(one.slotMin, tip[one.requirement.commitment]);
      (leader.followers ??= []).push(one);
      return;
    }
    one.start();
  };
}

/** What all calls share. */
type Way = Parts &
  Readonly<{
    /** Reads under way that may be joined, each at the place of its hash: a map by text costs more than all the rest. */
    underWay: (DirectCall | undefined)[];
    /** The request that is being written. */
    message: Buffer;
  }>;

/** One caller's read, and those that wait for its answer too. */
class DirectCall implements ExchangeHandler {
  readonly #way: Way;
  readonly call: Call;
  readonly route: ForwardRoute;
  readonly context: CallContext;
  readonly onReply: OnReply;
  readonly requirement: ReadRequirement;
  slotMin: number;
  readonly startedMs: number;
  backend: Backend | undefined;
  /** Its place in `underWay`; -1: it may not be joined. */
  place = -1;
  followers: DirectCall[] | undefined;
  isWatched = false;
  isOver = false;
  #body: Buffer | undefined;

  constructor(way: Way, call: Call, route: ForwardRoute, context: CallContext, onReply: OnReply) {
    this.#way = way;
    this.startedMs = way.clock.monotonic();
    this.call = call;
    this.route = route;
    this.context = context;
    this.onReply = onReply;
    this.requirement = readRequirementOf(call, route.method.class);
    this.slotMin = way.pool.slotMin(this.requirement, context.accountId);
  }

  start(): void {
    const { call, route, context } = this;
    const { pool, budget, idleMs, message } = this.#way;
    const bodyBytes = bodyBytesOf(call, route);
    const backend = pool.preferred(route.backends, this.requirement, context.accountId, this.slotMin);
    const head = backend?.client.headFor(context.acceptEncoding);
    const isTooLong = bodyBytes + (head?.length ?? 0) + 16 > MESSAGE_BYTES_MAX;
    if (backend === undefined || head === undefined || isTooLong) return this.#goOn();
    if (bodyBytes > (backend.config.bodyBytesMax ?? Infinity)) return this.#goOn();
    backend.enter();
    budget.deposit();
    this.backend = backend;
    const length = writeMessage(message, head, bodyBytes, call, route);
    backend.client.start(message, length, deadlineMsOf(route.method.class, idleMs), this);
  }

  onSmallReply(body: Buffer): void {
    this.#settle();
    this.#body = body;
    atEndOfTurn(this);
  }

  /** Answers with the reply that has come. */
  endTurn(): void {
    const { backend, call } = this;
    const body = this.#body;
    if (backend === undefined || body === undefined) return;
    const idAt = backend.config.trustsEnd === false ? -1 : plainIdAt(body, call.id);
    const slot = idAt === -1 ? 0 : slotOf(body, this.route.name);
    if (idAt === -1 || (slot > 0 && slot < this.slotMin)) return this.#fail(backend, judgeWhole(body));
    backend.leave();
    backend.markWell();
    this.#answer(body, slot, backend);
    if (this.followers === undefined) return;
    const [before, after] = [body.subarray(0, idAt), body.subarray(idAt + call.id.length)];
    for (const follower of this.followers) {
      if (slot < follower.slotMin) follower.start();
      else follower.#answer(Buffer.concat([before, follower.call.id, after]), slot, backend);
    }
  }

  onOutcome(outcome: HttpReply | NoReply): void {
    const { backend } = this;
    this.#settle();
    if (backend !== undefined) this.#fail(backend, outcome);
  }

  onLate(connection: Connection): void {
    if (this.isWatched) return;
    this.isWatched = true;
    const { signal } = this.context;
    const leave = () => {
      // Its connection may carry another exchange by now.
      if (!this.isOver && this.followers === undefined) connection.destroy('cancelled');
    };
    if (signal.aborted) leave();
    else signal.addEventListener('abort', leave, { once: true });
  }

  #settle(): void {
    this.isOver = true;
    if (this.place !== -1) this.#way.underWay[this.place] = undefined;
  }

  #answer(bytes: Buffer, slot: number, backend: Backend): void {
    const { pool, clock, onResponseStart } = this.#way;
    pool.learn(backend, this.requirement, this.context.accountId, slot);
    onResponseStart(this.route.method, clock.monotonic() - this.startedMs);
    // A Buffer of a read is never over shared memory.
    this.onReply({
      kind: 'whole',
      bytes: bytes as Uint8Array<ArrayBuffer>,
      encoding: undefined,
      isResult: true,
    });
  }

  /** The attempt has no plain result: what to do about it is decided by `forward`, for each caller alone. */
  #fail(backend: Backend, outcome: HttpReply | ResponseStart | Failure): void {
    const leave = leaveOnce(backend);
    const isStale = 'stale' in outcome && outcome.stale;
    if (isStale) leave();
    const first = { backend, leave, startedMs: this.startedMs, outcome };
    const reply = this.#way.forward(this.call, this.route, this.context, isStale ? undefined : first);
    void reply.then(this.onReply);
    this.followers?.forEach((follower) => follower.start());
  }

  #goOn(): void {
    this.#settle();
    void this.#way.forward(this.call, this.route, this.context).then(this.onReply);
  }
}

type Read = Readonly<{ call: Call; route: ForwardRoute; context: CallContext }>;

function isSameRead(a: Read, b: Read): boolean {
  if (a.route !== b.route || a.context.acceptEncoding !== b.context.acceptEncoding) return false;
  const [one, other] = [a.call.params ?? NOTHING, b.call.params ?? NOTHING];
  return one.length === other.length && isAt(one, 0, other);
}

const NOTHING = new Uint8Array();

/** FNV-1a, 32 bits, from the hash of what stands before the bytes. */
function hashOf(bytes: Uint8Array, seed: number): number {
  let hash = seed;
  for (let i = 0; i < bytes.length; i++) hash = Math.imul(hash ^ (bytes[i] ?? 0), 0x01000193);
  return hash;
}

const NO_TIP = { processed: 0, confirmed: 0, finalized: 0 };

/** The body of a request: `{"jsonrpc":"2.0","id":ID,"method":"NAME","params":PARAMS}`. */
const OPEN = Buffer.from('{"jsonrpc":"2.0","id":');
const PARAMS = Buffer.from(',"params":');

function bodyBytesOf({ id, params }: Call, { member }: ForwardRoute): number {
  return (
    OPEN.length + id.length + member.length + (params === undefined ? 0 : PARAMS.length + params.length) + 1
  );
}

function writeMessage(
  into: Buffer,
  head: Buffer,
  bodyBytes: number,
  { id, params }: Call,
  { member }: ForwardRoute,
) {
  into.set(head);
  let at = head.length;
  const digits = String(bodyBytes);
  for (let i = 0; i < digits.length; i++) into[at++] = digits.charCodeAt(i);
  into[at++] = CR;
  into[at++] = LF;
  into[at++] = CR;
  into[at++] = LF;
  into.set(OPEN, at);
  at += OPEN.length;
  for (let i = 0; i < id.length; i++) into[at++] = id[i] ?? 0;
  into.set(member, at);
  at += member.length;
  if (params !== undefined) {
    into.set(PARAMS, at);
    into.set(params, at + PARAMS.length);
    at += PARAMS.length + params.length;
  }
  into[at++] = CLOSE_BRACE;
  return at;
}

const CR = 0x0d;
const LF = 0x0a;
const CLOSE_BRACE = 0x7d;

const RESULT = Buffer.from('{"jsonrpc":"2.0","result":');
const ID = Buffer.from(',"id":');
const OBJECT = Buffer.from('{"jsonrpc":');

/** The index of the id in a whole answer `{"jsonrpc":"2.0","result":RESULT,"id":ID}` with this id, as nodes write it; -1 for any other. */
function plainIdAt(bytes: Buffer, id: Uint8Array): number {
  // Two objects in one body are none.
  return beginsResult(bytes) && bytes.indexOf(OBJECT, 1) === -1 ? idAtEnd(bytes, id) : -1;
}

/** Where the result of such an answer stands. */
export const RESULT_AT = RESULT.length;

export function beginsResult(bytes: Uint8Array): boolean {
  return isAt(bytes, 0, RESULT);
}

/** The index of the id in bytes that end such an answer; -1 when they do not. */
export function idAtEnd(bytes: Uint8Array, id: Uint8Array): number {
  let end = bytes.length;
  // Agave ends its answers with a line feed.
  if (bytes[end - 1] === LF) end--;
  const idAt = end - 1 - id.length;
  const isPlain =
    bytes[end - 1] === CLOSE_BRACE && isAt(bytes, idAt, id) && isAt(bytes, idAt - ID.length, ID);
  return isPlain ? idAt : -1;
}

const CONTEXT = Buffer.from('{"context":{');
const API_VERSION = Buffer.from('"apiVersion":"');
const SLOT = Buffer.from('"slot":');

/** The slot of a plain result: its context's, or that of `getSlot`; 0 when it says none. */
function slotOf(bytes: Buffer, method: string): number {
  let i = RESULT.length;
  if (method === 'getSlot') return numberAt(bytes, i);
  if (!isAt(bytes, i, CONTEXT)) return 0;
  i += CONTEXT.length;
  if (isAt(bytes, i, API_VERSION)) i = bytes.indexOf(QUOTE, i + API_VERSION.length) + 2;
  return isAt(bytes, i, SLOT) ? numberAt(bytes, i + SLOT.length) : 0;
}

function numberAt(bytes: Uint8Array, at: number): number {
  let n = 0;
  for (let i = at; i < at + 15; i++) {
    const digit = (bytes[i] ?? 0) - 0x30;
    if (digit < 0 || digit > 9) break;
    n = n * 10 + digit;
  }
  return n;
}
