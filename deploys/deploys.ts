import type { Clock } from '../shared/clock.ts';
import type { DeploysConfig } from '../shared/config/config.ts';
import { createIdentify, type Identify } from '../shared/keys/identify.ts';
import type { Log } from '../shared/log.ts';
import type { Store } from '../shared/store/open.ts';
import { createApp } from './api/app.ts';
import { createProgramsAnswer } from './api/programs.ts';
import { createRequestLog } from './api/request-log.ts';
import { createAdmit } from './api/webhooks/admit.ts';
import { createAdmitBySession } from './api/webhooks/admit-session.ts';
import { createAccountOf } from './console/account-of.ts';
import { createConsole } from './console/console.ts';
import { routesOf } from './console/routes.ts';
import { createDeliveries, type DeliveryDeps } from './delivery/deliveries.ts';
import type { NetworkPolicy } from './delivery/policy.ts';
import { bothHealths, healthOf } from './health.ts';
import { createMetrics } from './metrics.ts';
import { createAccountDeliveries } from './outbox/account-deliveries.ts';
import { createEnqueue, type Enqueue } from './outbox/enqueue.ts';
import { createOutbox } from './outbox/outbox.ts';
import { createHistory } from './programs/history.ts';
import { createProgramList } from './programs/list.ts';
import { tendUsage } from './usage/tend.ts';
import { createClientAddresses, type AddressOf } from './users/client-address.ts';
import type { People } from './users/people.ts';
import { createSessionAccount } from './users/session-account.ts';
import { createViewerOf } from './users/viewer-of.ts';
import type { Fetch } from './watch/rpc.ts';
import type { WatchedProgram } from './watch/watched.ts';
import { createWatching } from './watching.ts';
import type { Seal } from './webhooks/seal.ts';
import { createWebhookHealth } from './webhooks/webhook-health.ts';
import { createWebhooks, type Webhooks } from './webhooks/webhooks.ts';

export type DeploysDeps = Readonly<{
  config: Pick<DeploysConfig, 'publicUrl' | 'rpcUrls' | 'rpcKey' | 'pollMs'>;
  programs: readonly WatchedProgram[];
  /** Holds accounts, keys and what the watcher knows. */
  store: Store;
  /** What gateways spent and used, on a connection that writes and on another that reads. */
  ledger: Store;
  ledgerReader: Store;
  clock: Clock;
  fetch: Fetch;
  log: Log;
  /** Gives n uniform bytes. */
  random(bytes: number): Uint8Array;
  /** How deliveries are sent. Absent, they are queued and wait. */
  delivery?: DeliveryDeps;
  /** How webhooks are kept, and where they may lead. Absent, the API has none. */
  webhooks?: Readonly<{ seal: Seal; policy: NetworkPolicy }>;
  /** Who may log in. Absent, there is no console. */
  people?: Readonly<{ people: People; clientAddressHeader: string | undefined }> | undefined;
}>;

/** How long a revoked key may go on working. */
const REFRESH_MS = 250;

/** The whole app short of sockets and signals. `tend` watches the chain, the keys and usage until its signal aborts. */
export function createDeploys(deps: DeploysDeps) {
  const { config, programs, store, clock, log } = deps;
  const { enqueue, outbox } = createQueue(deps);
  const keys = createIdentify(store, clock);
  const metrics = createMetrics(() => {
    const { latest } = watcher.state();
    return latest === undefined ? undefined : clock.now() - latest.checkedAtMs;
  });
  const sending = { store, outbox, registry: metrics.registry, clock, log };
  const deliveries = deps.delivery && createDeliveries({ ...deps.delivery, ...sending });
  const wake = () => deliveries?.wake();
  const { watcher, timeOf } = createWatching({ ...deps, enqueue, outbox, metrics, wake });
  const webhooks = webhooksOf(deps, enqueue, wake);
  const addresses = createClientAddresses(deps.people?.clientAddressHeader);
  const app = createApp({
    webhooks: webhooks && webhookRoutesOf(deps, webhooks, keys.identify),
    answerPrograms: createProgramsAnswer({
      identify: keys.identify,
      enter: createRequestLog(),
      latest: () => watcher.state().latest,
      watched: programs,
      timeOf,
      clock,
    }),
    health: () => bothHealths(healthOf(watcher.state(), config.pollMs, clock.now()), deliveries?.health()),
    noteAnswer: metrics.noteAnswer,
    noteBroken: (error) => log.error({ err: error }, 'a request broke'),
    publicUrl: config.publicUrl,
    console: consoleOf(deps, addresses.of, webhooks),
  });

  const accountName = store.prepare<{ name: string }, [number]>('SELECT name FROM accounts WHERE id = ?');

  function lookAfterUsage(signal: AbortSignal): Promise<void> {
    const { ledger, ledgerReader: reader } = deps;
    const nameOf = (accountId: number) => accountName.get(accountId)?.name;
    const { noteMismatch } = metrics;
    return tendUsage({ ledger, reader, nameOf, noteMismatch, clock, log }, signal);
  }

  async function refreshKeys(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      keys.refresh();
      await clock.sleep(REFRESH_MS, signal);
    }
  }

  return {
    answer: (request: Request, address?: string) => {
      addresses.note(request, address);
      return app.handle(request);
    },
    answerMetrics: metrics.answer,
    async tend(signal: AbortSignal): Promise<void> {
      await Promise.all([
        watcher.run(signal),
        refreshKeys(signal),
        lookAfterUsage(signal),
        deliveries?.run(signal),
      ]);
    },
  };
}

function createQueue({ store, programs, random }: Pick<DeploysDeps, 'store' | 'programs' | 'random'>) {
  const labels = new Map<string, string>(programs.map(({ address, label }) => [address, label]));
  const enqueue = createEnqueue(store, (program) => labels.get(program) ?? program, random);
  return { enqueue, outbox: createOutbox(store, random) };
}

/** The console, where there is somebody who may log in. */
function consoleOf(deps: DeploysDeps, addressOf: AddressOf, webhooks: Webhooks | undefined) {
  const { people: login, programs, store, clock, log, config, random } = deps;
  if (login === undefined) return undefined;
  const lookUps = createRequestLog<string>();
  const { origin } = config.publicUrl;
  const { people } = login;
  return createConsole(
    {
      viewerOf: createViewerOf(people),
      accountOf: createAccountOf(store),
      clock,
      origin,
      noteBroken: (error) => log.error({ err: error }, 'a page of the console broke'),
    },
    routesOf({
      origin,
      random,
      webhookPages: webhooks && {
        webhooks,
        healthOf: createWebhookHealth(store),
        deliveries: createAccountDeliveries(store),
        programs: createProgramList(store, programs),
        history: createHistory(store),
        enter: (userId) => lookUps(userId, clock.monotonic()),
      },
      people,
      addressOf,
      noteUnavailable: (reason) => log.error({ reason }, 'the identity provider could not be used'),
    }),
  );
}

/** All that can be done with webhooks, for the API and the console alike. */
function webhooksOf(deps: DeploysDeps, enqueue: Enqueue, wake: () => void): Webhooks | undefined {
  const { programs, store, clock, random } = deps;
  if (deps.webhooks === undefined) return undefined;
  const watched = new Set<string>(programs.map(({ address }) => address));
  const isWatched = (address: string) => watched.has(address);
  return createWebhooks({ ...deps.webhooks, store, clock, enqueue, wake, isWatched, random });
}

/** The routes of webhooks, with a rate of their own beside that of the programs. */
function webhookRoutesOf(deps: DeploysDeps, webhooks: Webhooks, identify: Identify) {
  const { clock } = deps;
  const bySession = deps.people && bySessionOf(deps.people.people, deps);
  const admit = createAdmit({ identify, enter: createRequestLog(), clock, ...(bySession && { bySession }) });
  return { admit, webhooks };
}

function bySessionOf(people: People, { config, clock }: DeploysDeps) {
  const sessionAccount = createSessionAccount(createViewerOf(people), config.publicUrl.origin);
  return createAdmitBySession({ sessionAccount, enter: createRequestLog<string>(), clock });
}
