import { unreachable } from '../../shared/brand.ts';

/** Bytes that are thrown away of a refused body, or behind the last answer, so that a caller who sends first sees that. */
export const READ_OUT_BYTES_MAX = 16_777_216;

/** A caller's connection, with what it knows in this state alone. `E` is the request under way, `ahead` what came behind it. */
export type CallerState<E> =
  /** Waits for a request, or for the rest of a head, which `ahead` begins. */
  | Readonly<{ kind: 'idle'; ahead: Buffer; sinceMs: number }>
  /** Bytes that came behind a request wait for their turn (`turn-work.ts`). */
  | Readonly<{ kind: 'queued'; ahead: Buffer; sinceMs: number }>
  /** The body has not come whole. Of one in chunks `ahead` waits for its turn. */
  | Readonly<{ kind: 'receiving'; exchange: E; ahead: Buffer; sinceMs: number }>
  /** The answer is made, or passed on as it comes. */
  | Readonly<{ kind: 'answering'; exchange: E; ahead: Buffer }>
  /** Answered before the body had come, whose rest is thrown away. */
  | Readonly<{ kind: 'discarding'; exchange: E; ahead: Buffer; sinceMs: number }>
  /** Answered, and the system takes no more bytes: who does not read is not answered on. */
  | Readonly<{ kind: 'unread'; ahead: Buffer }>
  /** Only the last bytes are to be written. What comes is thrown away, `bytes` so far. */
  | Readonly<{ kind: 'ending'; bytes: number }>
  /** No more is sent. It reads on, for bytes that meet a closed socket lose what its caller has not read (RFC 9112 9.6). */
  | Readonly<{ kind: 'lingering'; bytes: number; fromMs: number; sinceMs: number }>
  | Readonly<{ kind: 'closed' }>;

export type CallerEvent<E> =
  /** A part of a head has come; a head, and not all of its body; all of a request. */
  | Readonly<{ kind: 'part'; ahead: Buffer; sinceMs: number }>
  | Readonly<{ kind: 'head'; exchange: E; ahead: Buffer; sinceMs: number }>
  | Readonly<{ kind: 'request'; exchange: E; ahead: Buffer }>
  /** More has come, and is not read now. */
  | Readonly<{ kind: 'ahead'; ahead: Buffer }>
  /** `isKept`: another request may follow. */
  | Readonly<{ kind: 'answered'; isKept: boolean }>
  /** The system takes no more; it has taken all. */
  | Readonly<{ kind: 'full' | 'drained' }>
  | Readonly<{ kind: 'thrown-away'; bytes: number }>
  /** The caller sends no more. */
  | Readonly<{ kind: 'half-closed' }>
  /** It ends with what has been written; at once; it has ended. */
  | Readonly<{ kind: 'end' | 'give-up' | 'gone' }>;

export type CallerFacts = Readonly<{
  nowMs: number;
  /** The system has not taken all that was written. */
  isUnread: boolean;
  isHalfClosed: boolean;
  /** The gateway stops. */
  isDraining: boolean;
}>;

const ENDING = { kind: 'ending', bytes: 0 } as const;
const CLOSED = { kind: 'closed' } as const;

/**
 * One HTTP/1.1 connection of a caller as a state machine. It carries one request at a time. Whoever drives it
 * (`caller-connection.ts`) has its socket and deadlines.
 *
 * ```mermaid
 * stateDiagram-v2
 *   [*] --> idle: a caller connects
 *   state open {
 *     idle --> idle: a part of a head
 *     idle --> receiving: a head
 *     idle --> answering: a whole request
 *     idle --> unread: the system takes no more of the last answers
 *     queued --> idle: a part of a head
 *     queued --> receiving: a head
 *     queued --> answering: a whole request
 *     queued --> unread: the system takes no more of the last answers
 *     receiving --> answering: the rest of the body
 *     receiving --> discarding: answered before that
 *     state over <<choice>>
 *     answering --> over: answered
 *     discarding --> over: the rest of the body
 *     unread --> over: the system has taken all
 *     over --> idle: nothing is ahead
 *     over --> queued: more has come
 *     over --> unread: the system takes no more
 *   }
 *   open --> ending: the last answer, a refusal, the caller sends no more, or the gateway stops
 *   ending --> lingering: the system has taken all
 *   ending --> closed: likewise, of a caller who sends no more
 *   lingering --> closed: the caller sends no more, or too much
 *   open --> closed: too late, or the caller is gone, as from every state
 * ```
 */
export function next<E>(state: CallerState<E>, event: CallerEvent<E>, facts: CallerFacts): CallerState<E> {
  if (state.kind === 'closed') return state;
  if (state.kind === 'ending' || state.kind === 'lingering') return afterEnd(state, event, facts);
  const after = whileOpen(state, event, facts);
  return facts.isHalfClosed && (after.kind === 'idle' || awaitsBody(after)) ? ENDING : after;
}

type In<E, K> = Extract<CallerState<E>, { kind: K }>;
type Open<E> = Exclude<CallerState<E>, { kind: 'ending' | 'lingering' | 'closed' }>;

/** Whether the next bytes belong to a body, and none wait for a turn. */
export function awaitsBody<E>(state: CallerState<E>): state is In<E, 'receiving' | 'discarding'> {
  return (state.kind === 'receiving' || state.kind === 'discarding') && state.ahead.length === 0;
}

/** Whether what is ahead is read when its turn comes. */
export function awaitsTurn<E>(state: CallerState<E>): state is In<E, 'queued' | 'receiving' | 'discarding'> {
  if (state.kind === 'queued') return true;
  return (state.kind === 'receiving' || state.kind === 'discarding') && state.ahead.length > 0;
}

function whileOpen<E>(state: Open<E>, event: CallerEvent<E>, facts: CallerFacts): CallerState<E> {
  const isBetween = state.kind === 'idle' || state.kind === 'queued';
  switch (event.kind) {
    case 'part':
      return isBetween ? { ...event, kind: 'idle' } : state;
    case 'head':
      if (isBetween) return { ...event, kind: 'receiving' };
      return state.kind === 'receiving' || state.kind === 'discarding'
        ? { ...state, ahead: event.ahead }
        : state;
    case 'request':
      if (state.kind === 'discarding') return afterRequest(event.ahead, facts);
      if (!isBetween && state.kind !== 'receiving') return state;
      return { kind: 'answering', exchange: event.exchange, ahead: event.ahead };
    case 'ahead':
      return state.kind === 'idle' ? state : { ...state, ahead: event.ahead };
    case 'answered':
      if (state.kind !== 'receiving' && state.kind !== 'answering') return state;
      if (!event.isKept) return ENDING;
      if (state.kind === 'answering') return afterRequest(state.ahead, facts);
      return { ...state, kind: 'discarding', sinceMs: facts.nowMs };
    case 'full':
      return isBetween ? { kind: 'unread', ahead: state.ahead } : state;
    case 'drained':
      return state.kind === 'unread' ? afterRequest(state.ahead, facts) : state;
    case 'end':
      return ENDING;
    case 'give-up':
    case 'gone':
      return CLOSED;
    case 'half-closed':
    case 'thrown-away':
      return state;
    default:
      return unreachable(event);
  }
}

function afterRequest<E>(ahead: Buffer, { isDraining, isUnread, nowMs }: CallerFacts): CallerState<E> {
  if (isDraining) return ENDING;
  if (isUnread) return { kind: 'unread', ahead };
  return { kind: ahead.length > 0 ? 'queued' : 'idle', ahead, sinceMs: nowMs };
}

function afterEnd<E>(
  state: In<E, 'ending' | 'lingering'>,
  event: CallerEvent<E>,
  { nowMs, isHalfClosed }: CallerFacts,
): CallerState<E> {
  switch (event.kind) {
    case 'thrown-away': {
      const bytes = state.bytes + event.bytes;
      if (bytes > READ_OUT_BYTES_MAX) return CLOSED;
      return state.kind === 'ending' ? { ...state, bytes } : { ...state, bytes, sinceMs: nowMs };
    }
    case 'drained':
      if (state.kind === 'lingering') return state;
      return isHalfClosed ? CLOSED : { ...state, kind: 'lingering', fromMs: nowMs, sinceMs: nowMs };
    case 'half-closed':
      return state.kind === 'lingering' ? CLOSED : state;
    case 'give-up':
    case 'gone':
      return CLOSED;
    default:
      return state;
  }
}
