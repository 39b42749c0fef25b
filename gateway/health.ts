import manifest from '../package.json' with { type: 'json' };
import type { Clock } from '../shared/clock.ts';
import type { BackendStatus, GatewayStatus } from '../shared/gateway-status.ts';
import type { Journal } from './limits/journal.ts';
import type { AccountsSource } from './replica/accounts.ts';
import { type Backend, isLiveNode, RECENT_SECONDS } from './upstream/backend.ts';

/** Says in a sentence whether the gateway can serve. */
export type Health = () => Readonly<{ ok: boolean; sentence: string }>;

/**
 * Whether the gateway can serve, in a sentence that names the backends which do not. It cannot when no live node is
 * well, however archives and asset servers are; without live nodes in the config, when no backend is well.
 */
export function healthOf(
  backends: readonly Backend[],
  journal: Journal,
  clock: Clock,
  source: AccountsSource = 'local',
): ReturnType<Health> {
  if (source === 'unknown')
    return {
      ok: false,
      sentence:
        'no accounts are known: none is kept here, and none that deploys on another host has published was read from Redis yet',
    };
  if (journal.isFailing())
    return { ok: false, sentence: 'charges cannot be written: trials are refused with 503' };
  const troubles = backends.map((backend) => troubleOf(backend, clock)).filter((each) => each !== undefined);
  if (troubles.length === 0) return { ok: true, sentence: 'ok' };
  const names = troubles.join(', ');
  const live = backends.filter(({ config }) => isLiveNode(config));
  const needed = live.length > 0 ? live : backends;
  if (needed.some((backend) => troubleOf(backend, clock) === undefined))
    return { ok: true, sentence: `ok, but not these backends: ${names}` };
  return { ok: false, sentence: `no backend is well: ${names}` };
}

function troubleOf(backend: Backend, clock: Clock): string | undefined {
  const { config, health } = backend;
  const { excludedBecause: out, reason, lagSlots } = health;
  if (out === 'lagging') return `${config.name} (${lagSlots} slots behind)`;
  if (out === 'unreachable') return `${config.name} (${reason})`;
  if (out !== undefined) return `${config.name} (${out})`;
  return backend.isFailing(clock) ? `${config.name} (failing)` : undefined;
}

/** The state of this process's backends. */
export function statusOf(backends: readonly Backend[], clock: Clock): GatewayStatus {
  return {
    version: manifest.version,
    processes: 1,
    recent_seconds: RECENT_SECONDS,
    backends: backends.map((backend) => backendStatusOf(backend, clock)),
  };
}

function backendStatusOf(backend: Backend, clock: Clock): BackendStatus {
  const { config, health, slots: view, inFlight, recent } = backend;
  const { answered, failed } = recent.sums();
  const slot = Math.max(view.tip.confirmed, health.tip);
  const excludedWhy =
    health.reason === '' ? health.excludedBecause : `${health.excludedBecause}: ${health.reason}`;
  const failing = backend.isFailing(clock) ? 'failing' : null;
  return {
    name: config.name,
    profile: config.profile,
    lanes: config.lanes,
    in: health.excludedBecause === undefined,
    why: health.excludedBecause === undefined ? failing : (excludedWhy ?? null),
    slot: slot > 0 ? slot : null,
    lag_slots: health.tip > 0 ? health.lagSlots : null,
    in_flight: inFlight,
    max_connections: config.connectionsMax,
    recent_answered: answered,
    recent_failed: failed,
  };
}

/**
 * The states of several processes of one config as one: a backend is in when all of them have it in, counts are added
 * up, the newest slot is taken, and with it the lag of the same process.
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
