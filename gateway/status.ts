import manifest from '../package.json' with { type: 'json' };
import type { Clock } from '../shared/clock.ts';
import type { BackendStatus, GatewayStatus } from '../shared/gateway-status.ts';
import type { Backend } from './backend/backend.ts';
import { RECENT_SECONDS } from './backend/recent.ts';

/** What this process knows of its backends. */
export function statusOf(backends: readonly Backend[], clock: Clock): GatewayStatus {
  return {
    version: manifest.version,
    processes: 1,
    recent_seconds: RECENT_SECONDS,
    backends: backends.map((backend) => backendStatusOf(backend, clock)),
  };
}

function backendStatusOf(backend: Backend, clock: Clock): BackendStatus {
  const { config, standing, view, inFlight, recent } = backend;
  const { answered, failed } = recent.sums();
  const slot = Math.max(view.tip.confirmed, standing.tip);
  const why = standing.reason === '' ? standing.out : `${standing.out}: ${standing.reason}`;
  return {
    name: config.name,
    profile: config.profile,
    lanes: config.lanes,
    in: standing.out === undefined,
    why: (standing.out === undefined ? undefined : why) ?? (backend.isFailing(clock) ? 'failing' : null),
    slot: slot > 0 ? slot : null,
    lag_slots: standing.tip > 0 ? standing.lagSlots : null,
    in_flight: inFlight,
    max_connections: config.connectionsMax,
    recent_answered: answered,
    recent_failed: failed,
  };
}

/**
 * What several processes of one config know, as one: a backend is in when all of them have it in, counts are added up,
 * and of slots the newest counts, and of lags the one that goes with it.
 */
export function togetherStatus(statuses: readonly GatewayStatus[]): GatewayStatus {
  const backends = new Map<string, BackendStatus>();
  for (const status of statuses)
    for (const backend of status.backends) {
      const before = backends.get(backend.name);
      backends.set(backend.name, before === undefined ? backend : joined(before, backend));
    }
  return {
    version: manifest.version,
    processes: statuses.reduce((sum, { processes }) => sum + processes, 0),
    recent_seconds: RECENT_SECONDS,
    backends: [...backends.values()],
  };
}

function joined(a: BackendStatus, b: BackendStatus): BackendStatus {
  const newest = (b.slot ?? 0) > (a.slot ?? 0) ? b : a;
  const worst = a.in && (!b.in || a.why === null) ? b : a;
  return {
    ...a,
    in: a.in && b.in,
    why: worst.why,
    slot: newest.slot,
    lag_slots: newest.lag_slots,
    in_flight: a.in_flight + b.in_flight,
    max_connections: a.max_connections + b.max_connections,
    recent_answered: a.recent_answered + b.recent_answered,
    recent_failed: a.recent_failed + b.recent_failed,
  };
}
