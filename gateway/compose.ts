import { fullGC, heapSize } from 'bun:jsc';
import type { Clock } from '../shared/clock.ts';
import type { BackendConfig } from '../shared/config/backends.ts';
import { type Config, urlOf } from '../shared/config/config.ts';
import { LANES_BY_DEFAULT } from '../shared/config/profiles.ts';
import { createIdentify } from '../shared/keys/identify.ts';
import type { Log } from '../shared/log.ts';
import type { PublishedTerms } from '../shared/publication.ts';
import type { Store } from '../shared/store/open.ts';
import { createAnswer } from './answer.ts';
import { createGcTuner } from './gc-tuner.ts';
import { createHostHealth, type Findings, type HostHealth } from './health.ts';
import { statusOf, unwellOf } from './status.ts';
import { createTroubles } from './troubles.ts';
import { historyGap } from './history/tiers.ts';
import { withHistory } from './history/history.ts';
import { createJournal } from './limits/journal.ts';
import { limitsAlone } from './limits/limits.ts';
import { limitsShared, type Sharing } from './cluster/node.ts';
import { dueMsBy } from '../shared/config/methods.ts';
import { createMetrics, type Metrics } from './metrics.ts';
import type { Hosts } from './cluster/hosts.ts';
import { createFailedKeys, createAuth } from './request/auth.ts';
import { createSendIds } from './request/send-id.ts';
import { createSend } from './respond/planned-call.ts';
import { createRespond } from './respond/respond.ts';
import { createDirect } from './upstream/direct.ts';
import { withRules } from './respond/rules.ts';
import { Backend, TURN_SECONDS } from './upstream/backend.ts';
import { Cache, withCache } from './upstream/cache.ts';
import { createFanOut } from './upstream/fan-out.ts';
import { createForward, type ForwardEvents } from './upstream/forward.ts';
import { createHedge } from './upstream/hedge.ts';
import { createHttpClient } from './upstream/http-client.ts';
import { NO_DESCRIPTORS } from './upstream/http-connection.ts';
import type { SlownessChange } from './upstream/latency.ts';
import { createPool, createRetryBudget, createRouter, type Pool } from './upstream/selection.ts';
import { createUsage } from './usage/usage.ts';

type GatewayDeps = Readonly<{
  /** This process in the ledger: no two processes on one data directory may have the same. */
  node: string;
  /** Its way of sharing accounts with others; `undefined`: it is alone. */
  sharing?: Sharing | undefined;
  /** Deploys on another host; `undefined`: accounts and usage are this host's alone. */
  hosts?: Hosts | undefined;
  /** Looks at the health of the host for all of its processes; until it has, this one says what it finds. `undefined`: it is alone. */
  supervisor?: Readonly<{ found(findings: Findings): void; health(): HostHealth | undefined }> | undefined;
  config: Config;
  accounts: Store;
  ledger: Store;
  clock: Clock;
  log: Log;
  random(): number;
  /** Fills bytes that nobody can guess. */
  fillRandom(bytes: Uint8Array): unknown;
}>;

/** The gateway without a listener. */
export type Gateway = ReturnType<typeof createGateway>;

/** A batch whose small answers have not all come by then is sent as they come. */
const GATHER_MS = 50;
/** A batch that waits for an answer says so this often; the listener's shortest idle limit is twice as long. */
const BEAT_MS = 4_000;

/** How long a read or write of accounts and keys waits for another process, in milliseconds. */
const ACCOUNTS_BUSY_MS = 25;
/** How long each of the last writes to the ledger waits for another process, in milliseconds. */
const LAST_BUSY_MS = 1_000;

/** A turn of the maintenance: changed keys, plans and accounts are noticed; revocation promises a second. */
const TEND_MS = 250;
/** Turns between two looks at the stores, and between two of a backend's recent calls. */
const LOOK_TURNS = 4;
const RECENT_TURNS = (TURN_SECONDS * 1_000) / TEND_MS;

const USAGE_LOST = 'usage was not counted, for the ledger takes no writes';

export function createGateway(deps: GatewayDeps) {
  const { node, sharing, hosts, supervisor, config, accounts, ledger, clock, log } = deps;
  const { probeMs, bodyBytesMax, cacheBytes } = config.gateway;
  const dueMs = dueMsBy(config.gateway.deadlinesMs);
  const backends = backendsOf(config).map((each) => backendFrom(each, clock, config));
  // A read waits for who holds the file alone, and every request behind it: keys in memory must not wait with it.
  accounts.run(`PRAGMA busy_timeout = ${ACCOUNTS_BUSY_MS}`);
  const keys = hosts?.accounts.keys ?? createIdentify(accounts, clock);
  let accountsRevision = 0;
  const revision = () => hosts?.accounts.revision() ?? accountsRevision;
  const onLost = (elements: number) => log.error({ elements }, USAGE_LOST);
  const usage = createUsage({ ledger, node, clock, onLost });
  const journal = createJournal(ledger, node, setImmediate, usage.inSameTransaction);
  const shared = sharing && limitsShared({ node, sharing, journal, ledger, clock, revision });
  const limits = shared ?? limitsAlone(journal, ledger, clock);
  const lookForTroubles = createTroubles({ ...deps, journal, usage, link: shared?.link });
  const host = createHostHealth(clock, supervisor === undefined ? log : undefined);
  const cache = cacheBytes === 0 ? undefined : new Cache(cacheBytes);
  const metrics = createMetrics(backends, shared?.link, cache);
  const pool = poolOf(backends, metrics, deps);
  const parts = { clock, dueMs, pool, ...sendingFrom(deps), ...eventsFor(metrics, log, clock) };
  const forward = createForward(parts);
  const acrossTiers = withHistory(forward, clock);
  const cached = cache === undefined ? acrossTiers : withCache(acrossTiers, cache, pool);
  const hedge = config.gateway.hedge ? createHedge(parts, metrics.hedge) : undefined;
  const direct = createDirect({ ...parts, hedge });
  const fanOut = createFanOut({ ...parts, onFanOut: metrics.fanOut });
  let terms: PublishedTerms = config;
  const answer = createAnswer({
    bodyBytesMax,
    terms: () => hosts?.accounts.terms() ?? terms,
    identify: createAuth(keys, createFailedKeys(clock)),
    routeOf: createRouter(backends),
    ...limits,
    respond: createRespond({
      send: createSend(direct, withRules(cached, pool, clock), limits.scans, clock, fanOut),
      charging: limits.charging,
      codings: config.gateway.compress,
      backendNames: config.gateway.tellBackend ? namesToTell(backends) : undefined,
      permits: limits.permits,
      onCall: metrics.call,
      onOutcome: metrics.outcome,
      gather: (signal) => clock.sleep(GATHER_MS, signal),
      beat: (signal) => clock.sleep(BEAT_MS, signal),
    }),
    usage,
    onOutcome: metrics.outcome,
  });

  function check(closeIdle?: () => void): void {
    const findings = { troubles: lookForTroubles(closeIdle), ...unwellOf(backends, clock) };
    host.update([findings]);
    supervisor?.found(findings);
  }

  /** Runs until `signal` aborts. `reload` gets the revision of a config to be read again; `closeIdle`: descriptors are short. */
  async function runMaintenance(
    reload: (revision: number) => void,
    signal: AbortSignal,
    closeIdle?: () => void,
  ): Promise<void> {
    const elsewhere = [hosts?.accounts.tend(signal), hosts?.push?.run(signal)];
    const working = [
      watchBackends(pool, probeMs, clock, signal),
      usage.maintain(signal),
      limits.tend(signal),
      ...elsewhere,
    ];
    const revisions = accounts.prepare<Revision, []>('SELECT value, config FROM revision');
    let seen = revisionIn(revisions);
    const tuneGc = createGcTuner(HEAP);
    check(closeIdle);
    for (let turn = 1; !signal.aborted; turn++) {
      await clock.sleep(TEND_MS, signal);
      const now = revisionIn(revisions) ?? seen;
      keys.refresh();
      if (now !== undefined) accountsRevision = now.value + now.config;
      // Refused requests append nothing, so the journal itself tries again.
      journal.retry();
      // After a change too: /health must not say that there is no account when the first was created.
      if (turn % LOOK_TURNS === 0 || now?.value !== seen?.value) check(closeIdle);
      for (const { client } of backends) client.tick();
      pool.compareLatencies();
      hedge?.tick();
      if (turn % RECENT_TURNS === 0) for (const { recent } of backends) recent.turn();
      limits.turn?.(turn);
      tuneGc();
      if (now !== undefined && now.config !== seen?.config) reload(now.config);
      seen = now;
    }
    await Promise.all(working);
  }

  async function close(): Promise<void> {
    for (const { client } of backends) client.close();
    keys.refresh();
    // No request waits any more, and what is not written now is lost.
    ledger.run(`PRAGMA busy_timeout = ${LAST_BUSY_MS}`);
    journal.close();
    usage.flush();
    await limits.close();
    await hosts?.push?.close();
    await hosts?.accounts.close();
  }

  return {
    answer,
    health: () => supervisor?.health() ?? host.now(),
    metrics,
    status: () => statusOf(backends, clock),
    setTerms: (changed: PublishedTerms) => void (terms = changed),
    /** Learns how the backends stand, within a second or two, so that the first request finds it known. */
    probeAll: pool.probeAll,
    runMaintenance,
    flush: () => (journal.flush(), usage.flush()),
    close,
  };
}

/** Probes all backends every `probeMs`, and sooner where it is urgent. */
async function watchBackends(pool: Pool, probeMs: number, clock: Clock, signal: AbortSignal): Promise<void> {
  for (let probedAtMs = clock.monotonic(); !signal.aborted;) {
    await clock.sleep(Math.min(TEND_MS, probedAtMs + probeMs - clock.monotonic()), signal);
    if (!pool.isUrgent() && clock.monotonic() < probedAtMs + probeMs) continue;
    probedAtMs = clock.monotonic();
    await pool.probeAll(signal);
  }
}

const HEAP = {
  bytes: heapSize,
  collect: () => Bun.gc(false),
  collectNow: fullGC,
  compact: () => Bun.gc(true),
};

const SLOWNESS: Readonly<Record<SlownessChange, string>> = {
  slow: 'a backend is slow: light calls prefer others',
  recovered: 'a backend is as fast as others again',
  excused: 'a backend is not slow: its calls take as long elsewhere',
};

function poolOf(backends: readonly Backend[], metrics: Metrics, { config, clock, log }: GatewayDeps) {
  return createPool({
    backends,
    clock,
    lagSlotsMax: config.gateway.lagSlotsMax,
    historyGap,
    onChange({ config: { name: backend }, health: { excludedBecause: why, reason, lagSlots } }) {
      const more = reason === '' ? { lagSlots } : { reason };
      if (why === undefined) log.info({ backend }, 'a backend takes part again');
      else log.warn({ backend, why, ...more }, 'a backend is left out');
    },
    onUnreachable: (backend) => metrics.failure(backend, 'probe'),
    onGap(gap) {
      if (gap === undefined) log.info('every slot of history is in some backend again');
      else log.warn(gap, 'no backend has these slots: let the live nodes or the archives keep more');
    },
    onSlowness: ({ config: { name: backend } }, change) =>
      change === 'slow' ? log.warn({ backend }, SLOWNESS[change]) : log.info({ backend }, SLOWNESS[change]),
  });
}

/** Parts that all calls to backends share. */
function sendingFrom({ fillRandom, random }: GatewayDeps) {
  return { nextId: createSendIds(fillRandom), budget: createRetryBudget(), random };
}

/** Counts what happens on the way to backends. Logs one line a penalty, not one a call: a dead backend under load must not fill the disk. */
function eventsFor(metrics: Metrics, log: Log, clock: Clock): ForwardEvents {
  return {
    onResponseStart: ({ class: kind }, ms) => metrics.firstByte(kind, ms / 1_000),
    onFailure(backend, failure) {
      // This process reports it once, as a trouble of its own.
      if (failure.kind === 'unsent' && failure.reason === NO_DESCRIPTORS) return;
      metrics.failure(backend, failure.kind);
      if (!backend.isFailing(clock)) log.warn({ backend: backend.config.name, failure }, 'a backend failed');
    },
    onRetry: metrics.retry,
    onCut(backend, end) {
      metrics.cut(backend, end.reason);
      // Callers can have their own evicted as often as they ask.
      if (end.reason !== 'evicted' && !backend.isFailing(clock))
        log.warn({ backend: backend.config.name, end }, 'a stream was cut');
    },
  };
}

function backendFrom(backend: BackendConfig, clock: Clock, { gateway }: Config): Backend {
  const { idleMs, processes } = gateway;
  const { url, codings } = backend;
  const headers = new Map([...backend.headers].map(([name, value]) => [name, value.reveal()]));
  return new Backend(backend, createHttpClient({ url, codings, headers, clock, idleMs }), processes);
}

/** The names by which callers see backends: the config's own, or a number for one that may be an address, hashed or not. */
function namesToTell(backends: readonly Backend[]): ReadonlyMap<string, string> {
  const tellable = /^(?!.*\d+[-_]\d+[-_]\d+)[A-Za-z][A-Za-z0-9_-]{0,31}$/;
  return new Map(
    backends.map(({ config: { name } }, i) => [name, tellable.test(name) ? name : String(i + 1)]),
  );
}

/** Counters of the accounts database: changes of accounts and keys, and requests for a reload. */
type Revision = Readonly<{ value: number; config: number }>;

function revisionIn(revisions: { get(): Revision | null }): Revision | undefined {
  try {
    return revisions.get() ?? undefined;
  } catch {
    return undefined; // the store does not answer for now; the next turn reads it again
  }
}

function backendsOf({ backends, localnet }: Config): readonly BackendConfig[] {
  if (backends.length > 0) return backends;
  return [
    {
      name: 'localnet',
      url: urlOf(localnet.listen),
      profile: 'agave',
      lanes: LANES_BY_DEFAULT,
      methods: ['requestAirdrop'],
      headers: new Map(),
      bodyBytesMax: undefined,
      connectionsMax: 512,
      trustsEnd: false,
      codings: [],
    },
  ];
}
