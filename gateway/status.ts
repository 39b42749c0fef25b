import manifest from '../package.json' with { type: 'json' };
import type { Clock } from '../shared/clock.ts';
import type { BackendStatus, GatewayStatus } from '../shared/gateway-status.ts';
import type { Findings } from './health.ts';
import { type Backend, isLiveNode, RECENT_SECONDS } from './upstream/backend.ts';

/** A backend whose calls fail is behind others for a second or more; so is one that lost a single call. */
const FAILING_MS = 2_000;
/** Calls of a failing backend succeed now and then. */
const FAILING_CLEAR_MS = 3_000;

/** The backends that are not well, and the names of those of which one must be: a live node, or any without one. */
export function unwellOf(backends: readonly Backend[], clock: Clock): Pick<Findings, 'unwell' | 'needed'> {
  const unwell = backends.flatMap((backend) => {
    const cause = troubleOf(backend, clock);
    if (cause === undefined) return [];
    const trouble = { what: backend.config.name, cause, stops: false };
    const isExcluded = backend.health.excludedBecause !== undefined;
    return isExcluded ? trouble : { ...trouble, raiseMs: FAILING_MS, clearMs: FAILING_CLEAR_MS };
  });
  const live = backends.filter(({ config }) => isLiveNode(config));
  const needed = (live.length > 0 ? live : backends).map(({ config }) => config.name);
  return { unwell, needed };
}

function troubleOf(backend: Backend, clock: Clock): string | undefined {
  const { excludedBecause, reason, lagSlots } = backend.health;
  if (excludedBecause === 'lagging') return `${lagSlots} slots behind`;
  if (excludedBecause === 'unreachable') return reason === '' ? 'answers again' : reason;
  return excludedBecause ?? (backend.isFailing(clock) ? 'failing' : undefined);
}

/** The state of this process's backends. */
export function statusOf(backends: readonly Backend[], clock: Clock): GatewayStatus {
  const states = backends.map((backend) => backendStatusOf(backend, clock));
  return statusFrom(1, states);
}

function statusFrom(processes: number, backends: readonly BackendStatus[]): GatewayStatus {
  return { version: manifest.version, processes, recent_seconds: RECENT_SECONDS, backends };
}

function backendStatusOf(backend: Backend, clock: Clock): BackendStatus {
  const { config, health, slots, inFlight, recent } = backend;
  const { excludedBecause, reason, tip, lagSlots } = health;
  const { answered, failed } = recent.sums();
  const slot = Math.max(slots.tip.confirmed, tip);
  const excludedWhy = reason === '' ? excludedBecause : `${excludedBecause}: ${reason}`;
  const isSlow = Object.values(backend.latencies).some((latency) => latency.isSlow);
  const troubled = backend.isFailing(clock) ? 'failing' : isSlow ? 'slow' : undefined;
  return {
    name: config.name,
    profile: config.profile,
    lanes: config.lanes,
    in: excludedBecause === undefined,
    why: (excludedBecause === undefined ? troubled : excludedWhy) ?? null,
    slot: slot > 0 ? slot : null,
    lag_slots: tip > 0 ? lagSlots : null,
    in_flight: inFlight,
    max_connections: config.connectionsMax,
    recent_answered: answered,
    recent_failed: failed,
  };
}

/** The states of several processes as one: in when all have it in, counts added up, the newest slot with its lag. */
export function togetherStatus(statuses: readonly GatewayStatus[]): GatewayStatus {
  const states = statuses.flatMap(({ backends }) => backends);
  const byName = Map.groupBy(states, ({ name }) => name).values();
  const processes = statuses.reduce((sum, status) => sum + status.processes, 0);
  const merged = [...byName].map((each) => each.reduce(merge));
  return statusFrom(processes, merged);
}

function merge(a: BackendStatus, b: BackendStatus): BackendStatus {
  const newest = (b.slot ?? 0) > (a.slot ?? 0) ? b : a;
  const worst = a.in && (!b.in || a.why === null) ? b : a;
  return {
    ...a,
    in: a.in && b.in,
    why: worst.why,
    slot: newest.slot,
    lag_slots: newest.lag_slots,
    in_flight: a.in_flight + b.in_flight,
    max_connections: a.max_connections, // the host's, which they share
    recent_answered: a.recent_answered + b.recent_answered,
    recent_failed: a.recent_failed + b.recent_failed,
  };
}
