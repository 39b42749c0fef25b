import { isAt } from '../json/scan.ts';
import { type Call, requestBytes, writeRequest } from '../request/envelope.ts';
import { EMPTY } from '../http/slab.ts';
import { LEFT_OUT } from '../http/stream-body.ts';
import { atEndOfTurn } from '../http/turns.ts';
import { answerSlot, type Backend, hashOf } from './backend.ts';
import { isStale, type Outcome, type CallReply } from './failover.ts';
import { plainIdAt, withCallerId } from './followed-answer.ts';
import { type CallContext, ForwardedCall, type ForwardParts } from './forward.ts';
import type { Failure } from './failure.ts';
import { type BatchedRead, createBatchedReads } from './batched-reads.ts';
import { SEND_ID_BYTES } from '../request/send-id.ts';
import type { Hedge, HedgedCall } from './hedge.ts';
import type { Connection, ExchangeHandler, HttpReply, NoReply } from './http-connection.ts';
import { judge, judgeWhole } from './response-reader.ts';
import { type ForwardRoute, isOfThisChain, type Need, takersOf } from './selection.ts';

/**
 * The first attempt of a small read, at the account's preferred backend, answered from one read of its socket. What else
 * comes of it is an outcome for failover, as of any attempt. Identical reads that are under way share one. `onReply` is called once.
 */
export type Direct = (
  call: Call,
  route: ForwardRoute,
  context: CallContext,
  onReply: (reply: CallReply) => void,
) => void;

type DirectParts = ForwardParts & Readonly<{ hedge?: Hedge | undefined }>;

/** A read joins one that was begun at most so long ago, which bounds the age of its answer. */
const SHARED_MS = 100;
/** Longer parameters are lists of accounts, whose answers are rarely small. */
const SHARED_PARAMS_BYTES_MAX = 1_024;
/** A power of two, above the number of calls that are under way at once in most processes. */
const SHARED_MAX = 4_096;
/** Longer requests get a buffer of their own. */
const BODY_BYTES_MAX = 65_536;

export function createDirect(parts: DirectParts): Direct {
  const shared = sharedFrom(parts);
  const { underWay, pool } = shared;

  return function direct(call, route, context, onReply) {
    const { params = EMPTY } = call;
    const one = new DirectCall(shared, { call, route, context, onReply });
    const backend = pool.preferred(route.backends, one.need);
    const isShared = route.method.shared && params.length <= SHARED_PARAMS_BYTES_MAX;
    // A call that samples a slow backend is not shared: no other waits for it.
    if (!isShared || backend === undefined || backend.latencies[route.method.lane]?.isSlow === true)
      return one.start(backend);
    // Only calls with the same preferred backend are shared.
    const sharedAt = hashOf(params, route.name.length ^ backend.number) & (SHARED_MAX - 1);
    const leader = underWay[sharedAt];
    if (leader === undefined) {
      one.sharedAt = sharedAt;
      underWay[sharedAt] = one;
    } else if (leader.backend === backend && leader.isJoinedBy(one)) return;
    one.start(backend);
  };
}

function sharedFrom(parts: DirectParts) {
  /** The request that is being written, with as much room for its head as for its body. */
  const message = Buffer.allocUnsafe(2 * BODY_BYTES_MAX);
  return {
    ...parts,
    message,
    addToBatch: createBatchedReads({ ...parts, message, bodyBytesMax: BODY_BYTES_MAX }),
    /** Reads under way that may be joined, each at an index made of its hash: a map by text costs more than the rest of a call. */
    underWay: Array.from<DirectCall | undefined>({ length: SHARED_MAX }),
  };
}

/** One caller's read, and those that wait for its answer too. */
class DirectCall implements ExchangeHandler, HedgedCall, BatchedRead {
  readonly #shared: ReturnType<typeof sharedFrom>;
  readonly read: Read;
  readonly startedMs: number;
  /** When its own attempt began: later than the call where it first waited for another's. */
  sentMs: number;
  /** Its index in `underWay`; -1: it may not be joined. */
  sharedAt = -1;
  need: Need;
  backend: Backend | undefined;
  followers: DirectCall[] | undefined;
  /** The answer to its own attempt, and when that came. */
  body: Buffer | undefined;
  connection: Pick<Connection, 'destroy'> | undefined;
  cameMs = 0;
  /** It travels with others of its batch, whose time says nothing about a read alone. */
  isBatched = false;
  /** Where its id stands, where that is known. */
  idAt: number | undefined;
  /** The id that its own attempt was sent under. */
  sentId: Uint8Array = EMPTY;
  /** It is answered, or its attempt has failed: what that may still give is not wanted. */
  isOver = false;

  constructor(shared: ReturnType<typeof sharedFrom>, read: Read) {
    this.#shared = shared;
    this.read = read;
    this.startedMs = this.sentMs = shared.clock.monotonic();
    this.need = shared.pool.needOf(read.call, read.route.method, read.context.accountId);
  }

  /** Sends it to a backend; `undefined`: none is fit at once. */
  start(backend: Backend | undefined): void {
    const { route } = this.read;
    const { clock, budget, dueMs, hedge } = this.#shared;
    const bodyBytes = this.requestBytes;
    const bytesMax = Math.min(backend?.config.bodyBytesMax ?? Infinity, BODY_BYTES_MAX);
    if (backend === undefined || bodyBytes > bytesMax) {
      this.#settle();
      return this.#replyFrom(this.#forwarded());
    }
    backend.enter(clock);
    budget.deposit();
    this.backend = backend;
    const dueAtMs = this.sentMs + dueMs[route.method.class];
    const { inBatch } = this.read.context;
    this.isBatched = inBatch !== undefined && route.method.class === 'light' && backend.takesBatches(clock);
    if (inBatch !== undefined && this.isBatched)
      return this.#shared.addToBatch(this, inBatch.batch, backend, dueAtMs);
    this.sentId = this.#send(backend, bodyBytes, this.sentMs, dueAtMs, this);
    if (hedge !== undefined && route.method.class === 'light' && route.backends.length > 1) hedge.watch(this);
  }

  /** Gives the id that it is sent under. */
  #send(
    backend: Backend,
    bodyBytes: number,
    nowMs: number,
    dueAtMs: number,
    handler: ExchangeHandler,
  ): Uint8Array {
    const { call, route } = this.read;
    const { message, nextId } = this.#shared;
    const { head } = backend.client;
    const sentId = nextId();
    message.set(head);
    const length = `${bodyBytes}\r\n\r\n`;
    for (let i = 0; i < length.length; i++) message[head.length + i] = length.charCodeAt(i);
    const end = writeRequest(call, sentId, route.member, message, head.length + length.length);
    backend.client.start(message, end, nowMs, dueAtMs, handler);
    return sentId;
  }

  /** Sends it to a second backend, within the deadline of the first. */
  sendTo(backend: Backend, handler: ExchangeHandler): Uint8Array {
    const { route } = this.read;
    const { clock, dueMs } = this.#shared;
    const endMs = this.sentMs + dueMs[route.method.class];
    return this.#send(backend, this.requestBytes, clock.monotonic(), endMs, handler);
  }

  get able(): readonly Backend[] {
    return takersOf(this.read.route, this.requestBytes);
  }

  get requestBytes(): number {
    return requestBytes(this.read.call, this.read.route.member);
  }

  writeAs(sentId: Uint8Array, into: Buffer, at: number): number {
    this.sentId = sentId;
    return writeRequest(this.read.call, sentId, this.read.route.member, into, at);
  }

  onElement(element: Buffer, idAt: number, cameMs: number, connection: Pick<Connection, 'destroy'>): void {
    this.idAt = idAt;
    this.onSmallReply(element, cameMs, connection);
  }

  onFailure(failure: Failure): void {
    this.#settle();
    if (this.backend === undefined) return;
    if (this.isOver) this.#drop(this.backend, failure.kind === 'status');
    else this.#fail(this.backend, failure);
  }

  sendAlone(): void {
    if (this.backend === undefined) return;
    if (this.hasLeft()) return this.onFailure({ kind: 'no-answer', reason: 'cancelled' });
    const { clock, dueMs } = this.#shared;
    const dueAtMs = this.sentMs + dueMs[this.read.route.method.class];
    this.sentMs = clock.monotonic();
    this.isBatched = false;
    this.sentId = this.#send(this.backend, this.requestBytes, this.sentMs, dueAtMs, this);
  }

  /** Whether the same read of another caller waits for this one's answer. */
  isJoinedBy(other: DirectCall): boolean {
    if (other.startedMs - this.startedMs > SHARED_MS || !isSameRead(this.read, other.read)) return false;
    const { commitment, slotMin } = other.need;
    // What this caller, or any other, has been shown of the node before it joined.
    if (commitment !== undefined && this.backend !== undefined)
      other.need = { ...other.need, slotMin: Math.max(slotMin, this.backend.slots.tip[commitment]) };
    (this.followers ??= []).push(other);
    return true;
  }

  onSmallReply(body: Buffer, cameMs: number, connection: Pick<Connection, 'destroy'>): void {
    this.connection = connection;
    this.#settle();
    this.body = body;
    this.cameMs = cameMs;
    atEndOfTurn(this);
  }

  endTurn(): void {
    const { backend, body, sentId } = this;
    if (backend === undefined || body === undefined) return;
    const idAt = this.idAt ?? plainIdAt(body, sentId);
    if (!this.isOver && this.answerWith(backend, body, idAt, this.sentMs, this.cameMs)) return;
    const judged = judgeWhole(body, this.#sentCall, backend.config.trustsEnd);
    // What comes next over it may be late answers to others.
    if (judged.kind === 'garbage') this.connection?.destroy('bad-framing');
    if (this.isOver) this.#drop(backend, true);
    else this.#fail(backend, judged);
  }

  /** Answers all who wait with what a backend gave at `cameMs`, sent to it at `sentMs`; false: it is no plain result (`idAt` -1), or too old. */
  answerWith(backend: Backend, body: Buffer, idAt: number, sentMs: number, cameMs: number): boolean {
    const { call, route } = this.read;
    const slot = idAt === -1 ? 0 : answerSlot(route.method.slotIn, body);
    if (idAt === -1 || (slot > 0 && slot < this.need.slotMin)) return false;
    this.isOver = true;
    this.#settle();
    backend.leave();
    backend.markWell();
    if (!this.isBatched) this.#shared.pool.noteTime(backend, route.backends, this.need, cameMs - sentMs);
    for (const follower of this.followers ?? []) {
      const { id } = follower.read.call;
      const own = [body.subarray(0, idAt), id, body.subarray(idAt + SEND_ID_BYTES)];
      if (slot < follower.need.slotMin) follower.#restart();
      else follower.#answer(Buffer.concat(own), slot, backend, cameMs);
    }
    // Last, because it may take the answer's own memory.
    this.#answer(withCallerId(body, idAt, call.id), slot, backend, cameMs);
    return true;
  }

  onOutcome(outcome: HttpReply | NoReply): void {
    this.#settle();
    if (this.backend === undefined) return;
    if (!this.isOver) return this.#fail(this.backend, outcome);
    if (outcome.kind === 'reply') outcome.body.cancel();
    this.#drop(this.backend, outcome.kind === 'reply');
  }

  get accountId(): number {
    return this.read.context.accountId;
  }

  /** Whether another may answer, if its backend gives it up. */
  hasOther(): boolean {
    return this.able.some((each) => each !== this.backend && !each.isSilent && isOfThisChain(each));
  }

  hasLeft(): boolean {
    return this.isOver || [this, ...(this.followers ?? [])].every(({ read }) => read.context.signal.aborted);
  }

  #settle(): void {
    if (this.sharedAt !== -1) this.#shared.underWay[this.sharedAt] = undefined;
    this.sharedAt = -1;
  }

  /** Begins its own attempt, not at `except`. */
  #restart(except?: Backend): void {
    const { clock, pool } = this.#shared;
    this.sentMs = clock.monotonic();
    const others = this.able.filter((each) => each !== except);
    this.start(pool.preferred(others, this.need));
  }

  /** Another backend has answered: the outcome of its own attempt is a time and nothing else. */
  #drop(backend: Backend, isAnswered: boolean): void {
    backend.leave();
    backend.endProbation();
    this.#noteTime(backend, isAnswered);
  }

  #noteTime(backend: Backend, isAnswered: boolean): void {
    const { clock, pool } = this.#shared;
    const ms = clock.monotonic() - this.sentMs;
    if (this.isBatched) return;
    pool.noteTime(backend, this.read.route.backends, this.need, ms, isAnswered);
  }

  #answer(bytes: Buffer, slot: number, backend: Backend, cameMs: number): void {
    const { pool, onResponseStart } = this.#shared;
    const { route, onReply } = this.read;
    pool.learn(backend, this.need, slot);
    onResponseStart(route.method, cameMs - this.startedMs);
    // A Buffer of a read is never over shared memory.
    const own = bytes as Uint8Array<ArrayBuffer>;
    onReply({ kind: 'whole', bytes: own, code: undefined, slot, backend: backend.config.name });
  }

  /** The attempt has no plain result: each caller goes on alone. */
  #fail(backend: Backend, came: HttpReply | Outcome): void {
    this.isOver = true;
    this.#noteTime(backend, came.kind !== 'no-answer' && came.kind !== 'unsent');
    const call = this.#forwarded();
    const first = call.sendingTo(backend);
    if (came.kind !== 'reply') this.#replyFrom(call, call.after(first, came));
    else {
      const judged = judge(came, this.#sentCall, backend.config.trustsEnd, this.read.context.signal);
      void judged.then((outcome) => this.#replyFrom(call, call.after(first, outcome)));
    }
    for (const follower of this.followers ?? []) follower.#goOn(backend, came);
  }

  /** The attempt that it shared has no plain result. */
  #goOn(backend: Backend, came: HttpReply | Outcome): void {
    const call = this.#forwarded();
    if (this.hasLeft()) return this.#replyFrom(call);
    if (isStale(came) && backend.hasRoomFor(this.accountId)) {
      backend.enter(this.#shared.clock);
      return this.#replyFrom(call, call.sendingTo(backend, true));
    }
    // It must not go back there, also where nothing was marked because the first caller has left.
    this.#restart('reason' in came && came.reason === LEFT_OUT ? backend : undefined);
  }

  get #sentCall() {
    const { call, route } = this.read;
    return { slotIn: route.method.slotIn, sentId: this.sentId, callerId: call.id };
  }

  #forwarded(): ForwardedCall {
    const { call, route, context } = this.read;
    return new ForwardedCall(this.#shared, call, route, { ...context, startedMs: this.startedMs });
  }

  #replyFrom(call: ForwardedCall, state?: Parameters<ForwardedCall['run']>[0]): void {
    void call.run(state).then(this.read.onReply);
  }
}

type Read = Readonly<{
  call: Call;
  route: ForwardRoute;
  context: CallContext;
  onReply(reply: CallReply): void;
}>;

function isSameRead(a: Read, b: Read): boolean {
  if (a.route !== b.route) return false;
  const [one, other] = [a.call.params ?? EMPTY, b.call.params ?? EMPTY];
  return one.length === other.length && isAt(one, 0, other);
}
