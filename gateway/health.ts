import { unreachable } from '../shared/brand.ts';
import type { Clock } from '../shared/clock.ts';
import type { Log } from '../shared/log.ts';

/** A fault of a process, its stores or a backend, for `/health` and the log. */
export type Trouble = Readonly<{
  /** A clause that stays the same while it lasts; of a backend, its name. */
  what: string;
  /** The file or server that it is about, for the log, and what that said. */
  store?: string;
  cause?: string | undefined;
  /** Callers cannot be served correctly, so the host is not ready. */
  stops: boolean;
  /** A trouble that comes and goes is reported when it was seen for so long, and until it was not seen for so long; 0 by default. */
  raiseMs?: number;
  clearMs?: number;
}>;

/** The findings of one process at a look. */
export type Findings = Readonly<{
  troubles: readonly Trouble[];
  /** Backends that are not well. */
  unwell: readonly Trouble[];
  /** Names of the backends of which at least one must be well. */
  needed: readonly string[];
}>;

/** The answer of `/health`: whether callers can be served correctly, and why not. */
export type HostHealth = Readonly<{ ok: boolean; sentence: string }>;
export type Health = () => HostHealth;

/**
 * One trouble of the host, whichever of its processes see it:
 *
 *     absent ──seen──▶ suspected ──seen for raiseMs──▶ reported ◀──seen── fading
 *       ▲ ◀──unseen──────┘                              └──unseen──────────▶ │
 *       └──────────────────────unseen for clearMs────────────────────────────┘
 *
 * With raiseMs 0 it is reported at once, with clearMs 0 it is absent at once. Reported and fading are in `/health`.
 */
export type TroubleState =
  | { readonly kind: 'absent' }
  | { readonly kind: 'suspected'; readonly sinceMs: number }
  /** `causeMs`: when its cause was last seen. */
  | { readonly kind: 'reported'; readonly trouble: Trouble; readonly causeMs: number }
  | Readonly<{ kind: 'fading'; trouble: Trouble; causeMs: number; sinceMs: number }>;

/** A cause that is no longer seen is reported for so long before another one takes its place. */
export const CAUSE_MS = 10_000;

const ABSENT = { kind: 'absent' } as const;

/** The state after a look of the host at `nowMs`, in which these processes saw it, each with its cause; none: it was not seen. */
export function next(state: TroubleState, seen: readonly Trouble[], nowMs: number): TroubleState {
  const [first] = seen;
  switch (state.kind) {
    case 'absent':
      if (first === undefined) return state;
      return (first.raiseMs ?? 0) > 0 ? { kind: 'suspected', sinceMs: nowMs } : reported(first, nowMs);
    case 'suspected':
      if (first === undefined) return ABSENT;
      return nowMs - state.sinceMs < (first.raiseMs ?? 0) ? state : reported(first, nowMs);
    case 'reported':
      if (first !== undefined) return reportedAgain(state, first, seen, nowMs);
      return (state.trouble.clearMs ?? 0) > 0 ? { ...state, kind: 'fading', sinceMs: nowMs } : ABSENT;
    case 'fading':
      if (first !== undefined) return reportedAgain(state, first, seen, nowMs);
      return nowMs - state.sinceMs < (state.trouble.clearMs ?? 0) ? state : ABSENT;
    default:
      return unreachable(state);
  }
}

const reported = (trouble: Trouble, nowMs: number) =>
  ({ kind: 'reported', trouble, causeMs: nowMs }) as const;

function reportedAgain(
  { trouble, causeMs }: Extract<TroubleState, { trouble: Trouble }>,
  first: Trouble,
  seen: readonly Trouble[],
  nowMs: number,
): TroubleState {
  const same = seen.find(({ cause }) => cause === trouble.cause);
  if (same !== undefined) return reported(same, nowMs);
  return nowMs - causeMs < CAUSE_MS ? { kind: 'reported', trouble, causeMs } : reported(first, nowMs);
}

export const HOST_DRAINING: HostHealth = { ok: false, sentence: 'draining' };
const WELL: HostHealth = { ok: true, sentence: 'ok' };

/** The health of the host: whoever looks for all of its processes takes in what they found and logs what changes. */
export function createHostHealth(clock: Clock, log?: Log) {
  const troubles = new Map<string, TroubleState>();
  const unwell = new Map<string, TroubleState>();
  let health = WELL;

  /** Takes in the last findings of every process; gives the health. */
  function update(found: readonly Findings[]): HostHealth {
    const nowMs = clock.monotonic();
    const seen = found.flatMap((each) => each.troubles);
    for (const { before, after } of step(troubles, seen, nowMs)) {
      if (before === undefined) log?.error({ store: after?.store, cause: after?.cause }, after?.what ?? '');
      else if (after === undefined) log?.info({ store: before.store }, `no longer: ${before.what}`);
    }
    step(
      unwell,
      found.flatMap((each) => each.unwell),
      nowMs,
    );
    const needed = new Set(found.flatMap((each) => each.needed));
    health = healthOf(reportedIn(troubles), reportedIn(unwell), [...needed]);
    return health;
  }

  return { update, now: () => health };
}

/** Steps every trouble of `states`; gives those that are reported from now on, or no longer. */
function step(states: Map<string, TroubleState>, seen: readonly Trouble[], nowMs: number) {
  const changes: { before: Trouble | undefined; after: Trouble | undefined }[] = [];
  const byName = Map.groupBy(seen, ({ what }) => what);
  for (const what of new Set([...states.keys(), ...byName.keys()])) {
    const before = states.get(what) ?? ABSENT;
    const after = next(before, byName.get(what) ?? [], nowMs);
    if (after.kind === 'absent') states.delete(what);
    else states.set(what, after);
    const change = { before: reportedBy(before), after: reportedBy(after) };
    if ((change.before === undefined) !== (change.after === undefined)) changes.push(change);
  }
  return changes;
}

const reportedBy = (state: TroubleState) => ('trouble' in state ? state.trouble : undefined);

const reportedIn = (states: ReadonlyMap<string, TroubleState>) =>
  [...states.values()].flatMap((state) => reportedBy(state) ?? []);

/** Whether callers can be served correctly, with all that is not well. */
function healthOf(
  troubles: readonly Trouble[],
  unwell: readonly Trouble[],
  needed: readonly string[],
): HostHealth {
  const clauses = troubles.map(({ what, cause }) => (cause === undefined ? what : `${what} (${cause})`));
  const names = new Set(unwell.map(({ what }) => what));
  const isServed = needed.length === 0 || needed.some((name) => !names.has(name));
  const ok = isServed && !troubles.some(({ stops }) => stops);
  if (unwell.length > 0) {
    const list = unwell.map(({ what, cause }) => `${what} (${cause})`).join(', ');
    clauses.push(`${isServed ? 'not these backends' : 'no backend is well'}: ${list}`);
  }
  if (clauses.length === 0) return WELL;
  return { ok, sentence: `${ok ? 'ok, but ' : ''}${clauses.join('; ')}` };
}
