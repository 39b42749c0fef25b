import { isAt } from '../json/scan.ts';
import { type Call, requestBytes, writeRequest } from '../request/envelope.ts';
import { answerSlot, type Backend, hashOf } from './backend.ts';
import type { Failure } from './failure.ts';
import type { CallContext, Forward, ForwardParts, Reply } from './forward.ts';
import { EMPTY, type ExchangeHandler, type HttpReply, LEFT_OUT, type NoReply } from './http-connection.ts';
import { judgeWhole, plainIdAt, type ResponseStart } from './response-reader.ts';
import type { ForwardRoute, Need } from './selection.ts';
import { atEndOfTurn } from './turns.ts';

/**
 * The straight way of a small read: one attempt at the account's preferred backend, answered from one read of its
 * socket. Whatever else happens is for `forward`, which goes on with the outcome. Identical reads that are under way
 * share one attempt: each caller gets its own id. `onReply` is called once.
 */
export type Direct = (
  call: Call,
  route: ForwardRoute,
  context: CallContext,
  onReply: (reply: Reply) => void,
) => void;

type Parts = Pick<ForwardParts, 'clock' | 'dueMs' | 'pool' | 'budget' | 'onResponseStart'> &
  Readonly<{ forward: Forward }>;

/** A read joins one that is at most so old: what it gets is no older than that. */
const SHARED_MS = 100;
/** Longer parameters are lists of accounts, whose answers are rarely small. */
const SHARED_PARAMS_BYTES_MAX = 1_024;
/** A power of two, above the number of calls that are under way at once in most processes. */
const SHARED_PLACES = 4_096;
/** Longer requests are for `forward`, which gives each a buffer of its own. */
const BODY_BYTES_MAX = 65_536;

export function createDirect(parts: Parts): Direct {
  const shared = sharedFrom(parts);
  const { underWay } = shared;

  return function direct(call, route, context, onReply) {
    const { params = EMPTY } = call;
    const one = new DirectCall(shared, { call, route, context, onReply });
    if (!route.method.shared || params.length > SHARED_PARAMS_BYTES_MAX) return one.start();
    const place = hashOf(params, route.name.length) & (SHARED_PLACES - 1);
    const leader = underWay[place];
    if (leader === undefined) {
      one.place = place;
      underWay[place] = one;
    } else if (leader.isJoinedBy(one)) return;
    one.start();
  };
}

/** What all calls share. */
function sharedFrom(parts: Parts) {
  return {
    ...parts,
    /** Reads under way that may be joined, each at the place of its hash: a map by text costs more than all the rest. */
    underWay: Array.from<DirectCall | undefined>({ length: SHARED_PLACES }),
    /** The request that is being written, with as much room for its head as for its body. */
    message: Buffer.allocUnsafe(2 * BODY_BYTES_MAX),
  };
}

/** One caller's read, and those that wait for its answer too. */
class DirectCall implements ExchangeHandler {
  readonly #shared: ReturnType<typeof sharedFrom>;
  readonly read: Read;
  readonly startedMs: number;
  /** Its place in `underWay`; -1: it may not be joined. */
  place = -1;
  need: Need;
  backend: Backend | undefined;
  followers: DirectCall[] | undefined;
  body: Buffer | undefined;

  constructor(shared: ReturnType<typeof sharedFrom>, read: Read) {
    this.#shared = shared;
    this.read = read;
    this.startedMs = shared.clock.monotonic();
    this.need = shared.pool.needOf(read.call, read.route.method, read.context.accountId);
  }

  start(): void {
    const { call, route, context } = this.read;
    const { clock, pool, budget, message, dueMs } = this.#shared;
    const bodyBytes = requestBytes(call, route.member);
    const backend = pool.preferred(route.backends, this.need);
    const bytesMax = Math.min(backend?.config.bodyBytesMax ?? Infinity, BODY_BYTES_MAX);
    if (backend === undefined || bodyBytes > bytesMax) {
      this.#settle();
      return this.#forward(undefined);
    }
    backend.enter(clock);
    budget.deposit();
    this.backend = backend;
    const head = backend.client.headFor(context.acceptEncoding);
    message.set(head);
    const length = `${bodyBytes}\r\n\r\n`;
    for (let i = 0; i < length.length; i++) message[head.length + i] = length.charCodeAt(i);
    const end = writeRequest(call, route.member, message, head.length + length.length);
    backend.client.start(message, end, dueMs[route.method.class], this);
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

  onSmallReply(body: Buffer): void {
    this.#settle();
    this.body = body;
    atEndOfTurn(this);
  }

  /** Answers with the reply that has come. */
  endTurn(): void {
    const { backend, body } = this;
    const { call, route } = this.read;
    if (backend === undefined || body === undefined) return;
    const idAt = backend.config.trustsEnd === false ? -1 : plainIdAt(body, call.id);
    const slot = idAt === -1 ? 0 : answerSlot(route.name, body);
    if (idAt === -1 || (slot > 0 && slot < this.need.slotMin))
      return this.#fail(backend, judgeWhole(body, call.id));
    backend.leave();
    backend.markWell();
    this.#answer(body, slot, backend);
    if (this.followers === undefined) return;
    for (const follower of this.followers) {
      const { id } = follower.read.call;
      const own = [body.subarray(0, idAt), id, body.subarray(idAt + call.id.length)];
      if (slot < follower.need.slotMin) follower.start();
      else follower.#answer(Buffer.concat(own), slot, backend);
    }
  }

  onOutcome(outcome: HttpReply | NoReply): void {
    this.#settle();
    if (this.backend !== undefined) this.#fail(this.backend, outcome);
  }

  get accountId(): number {
    return this.read.context.accountId;
  }

  get hasOther(): boolean {
    return this.read.route.backends.length > 1;
  }

  hasLeft(): boolean {
    return [this, ...(this.followers ?? [])].every(({ read }) => read.context.signal.aborted);
  }

  #settle(): void {
    if (this.place !== -1) this.#shared.underWay[this.place] = undefined;
  }

  #answer(bytes: Buffer, slot: number, backend: Backend): void {
    const { pool, clock, onResponseStart } = this.#shared;
    const { route, onReply } = this.read;
    pool.learn(backend, this.need, slot);
    onResponseStart(route.method, clock.monotonic() - this.startedMs);
    // A Buffer of a read is never over shared memory.
    const own = bytes as Uint8Array<ArrayBuffer>;
    onReply({ kind: 'whole', bytes: own, encoding: undefined, isResult: true });
  }

  /** The attempt has no plain result: what to do about it is decided by `forward`, for each caller alone. */
  #fail(backend: Backend, outcome: HttpReply | ResponseStart | Failure): void {
    const isStale = outcome.kind === 'no-answer' && outcome.stale === true;
    // Those that shared it must not go back there.
    if (outcome.kind === 'no-answer' && outcome.reason === LEFT_OUT) backend.markFailed(this.#shared.clock);
    if (isStale) backend.leave();
    this.#forward(isStale ? undefined : { backend, startedMs: this.startedMs, outcome });
    this.followers?.forEach((each) => (each.hasLeft() ? each.#forward(undefined) : each.start()));
  }

  #forward(first: Parameters<Forward>[3]): void {
    const { call, route, context, onReply } = this.read;
    void this.#shared.forward(call, route, context, first).then(onReply);
  }
}

type Read = Readonly<{
  call: Call;
  route: ForwardRoute;
  context: CallContext;
  onReply(reply: Reply): void;
}>;

function isSameRead(a: Read, b: Read): boolean {
  if (a.route !== b.route || a.context.acceptEncoding !== b.context.acceptEncoding) return false;
  const [one, other] = [a.call.params ?? EMPTY, b.call.params ?? EMPTY];
  return one.length === other.length && isAt(one, 0, other);
}
