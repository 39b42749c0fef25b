import type { Clock } from '../shared/clock.ts';
import { type Config, urlOf } from '../shared/config/config.ts';
import { type BackendConfig, LANES_BY_DEFAULT } from '../shared/config/backends.ts';
import { createIdentify } from '../shared/keys/identify.ts';
import type { Log } from '../shared/log.ts';
import type { Store } from '../shared/store/open.ts';
import { createAnswer, type Terms } from './answer.ts';
import type { AnswerRequest, Health } from './app.ts';
import { Backend } from './backend/backend.ts';
import { createForward } from './backend/forward.ts';
import { fetchTransport } from './backend/transport.ts';
import { createCharging } from './limits/charge.ts';
import { createJournal } from './limits/journal.ts';
import { createMetrics, type Metrics } from './metrics.ts';
import { withStatusRule } from './methods/signature-statuses.ts';
import { createRespond } from './response/respond.ts';
import { createRouter } from './route/router.ts';

type Deps = Readonly<{ config: Config; accounts: Store; ledger: Store; clock: Clock; log: Log }>;

/** The gateway put together, without a listener. */
export type Gateway = Readonly<{
  answer: AnswerRequest;
  health: Health;
  metrics: Metrics;
  setTerms(terms: Terms): void;
  /** Keeps what it knows of accounts and plans fresh until `signal` aborts; `reload` is called when the CLI asks for it. */
  tend(reload: () => void, signal: AbortSignal): Promise<void>;
  /** Writes what is not yet written. */
  close(): void;
}>;

/** This process in the ledger; a second name appears when more processes share the charges. */
const NODE = 'gateway';

/** How often changed keys, plans and accounts are noticed; revocation promises a second. */
const TEND_MS = 250;

/** Buckets that are full again are forgotten once in so many turns. */
const SWEEP_TURNS = 240;

export function createGateway({ config, accounts, ledger, clock, log }: Deps): Gateway {
  const backends = backendsOf(config).map((backend) => new Backend(backend));
  const metrics = createMetrics(backends);
  const { identify, refresh } = createIdentify(accounts, clock);
  const journal = createJournal(ledger, NODE, setImmediate);
  const charging = createCharging(journal, clock);
  const routeOf = createRouter(backends);
  const forward = createForward({
    transport: fetchTransport,
    clock,
    idleMs: config.gateway.idleMs,
    onBegun: ({ class: kind }, ms) => metrics.firstByte(kind, ms / 1_000),
    onFailure(backend, failure) {
      metrics.failure(backend, failure);
      // One line a penalty, not one a call: a dead backend under load must not fill the disk.
      if (!backend.isFailing(clock)) log.warn({ backend: backend.config.name, failure }, 'a backend failed');
    },
  });
  const respond = createRespond({
    forward: withStatusRule(forward),
    charging,
    onCall: metrics.call,
  });
  let terms: Terms = config;
  const answer = createAnswer({
    bodyBytesMax: config.gateway.bodyBytesMax,
    terms: () => terms,
    identify,
    routeOf,
    charging,
    respond,
    onOutcome: metrics.outcome,
  });

  async function tend(reload: () => void, signal: AbortSignal): Promise<void> {
    const asked = accounts.prepare<{ config: number }, []>('SELECT config FROM revision');
    let seen = asked.get()?.config;
    for (let turn = 1; !signal.aborted; turn++) {
      await clock.sleep(TEND_MS, signal);
      refresh();
      if (turn % SWEEP_TURNS === 0) charging.sweep();
      const revision = configRevision(asked) ?? seen;
      if (revision !== seen) reload();
      seen = revision;
    }
  }

  return {
    answer,
    health: () => healthOf(backends, clock),
    metrics,
    setTerms: (changed) => void (terms = changed),
    tend,
    close: journal.flush,
  };
}

function configRevision(asked: { get(): { config: number } | null }): number | undefined {
  try {
    return asked.get()?.config;
  } catch {
    return undefined; // the store does not answer for now; the next turn asks again
  }
}

function healthOf(backends: readonly Backend[], clock: Clock): ReturnType<Health> {
  const failing = backends.filter((backend) => backend.isFailing(clock)).map(({ config }) => config.name);
  if (failing.length === 0) return { ok: true, sentence: 'ok' };
  const names = failing.join(', ');
  if (failing.length < backends.length)
    return { ok: true, sentence: `ok, but these backends fail: ${names}` };
  return { ok: false, sentence: `no backend answers: ${names}` };
}

/** The configured backends, or the embedded localnet. */
function backendsOf({ backends, localnet }: Config): readonly BackendConfig[] {
  if (backends.length > 0) return backends;
  return [
    {
      name: 'localnet',
      url: urlOf(localnet.listen),
      lanes: LANES_BY_DEFAULT,
      methods: ['requestAirdrop'],
      headers: new Map(),
      bodyBytesMax: undefined,
      connectionsMax: 512,
    },
  ];
}
