import { createRequestLog } from '../../../deploys/api/request-log.ts';
import { type By, createAudit } from '../../../deploys/accounts/audit.ts';
import type { Viewer } from '../../../deploys/auth/auth-service.ts';
import { attempt } from '../../../deploys/delivery/send.ts';
import { createAccountDeliveries } from '../../../deploys/outbox/list.ts';
import type { Sent } from '../../../deploys/outbox/outcome.ts';
import type { ProgramState } from '../../../deploys/watch/change.ts';
import { createHistory, createProgramList, createReadings } from '../../../deploys/watch/readings.ts';
import { createSecretsOf } from '../../../deploys/webhooks/seal.ts';
import { webhookRoutes } from '../../../deploys/console/routes.ts';
import type { WebhookServices } from '../../../deploys/console/page-services.ts';
import { createEnqueue } from '../../../deploys/outbox/enqueue.ts';
import type { WatchedProgram } from '../../../deploys/watch/watched.ts';
import { createWebhookHealth } from '../../../deploys/webhooks/webhook-health.ts';
import { createWebhooks } from '../../../deploys/webhooks/webhooks.ts';
import { CUSTOMER, startConsole } from './started.tsx';
import { random, startQueue } from '../outbox/queue.ts';
import { never, scriptedPolicy, testSeal } from '../webhooks/started.ts';
import { createVirtualClock } from '../../fakes/chain-clock.ts';
import { addressOf } from '../../fakes/chain.ts';
import { createScriptedSend, type SeenPost } from '../../fakes/scripted-send.ts';

/** The programs that are watched unless told otherwise. */
export const PROGRAMS: readonly WatchedProgram[] = [
  { address: addressOf('A'), label: 'Program A' },
  { address: addressOf('B'), label: 'Program B' },
];

/** Somebody of an account, who makes changes without a page. */
export const byAccount = (accountId: number): By => ({ accountId, actor: { kind: 'user', userId: 'u1' } });

/** The pages of webhooks over real services on a database in memory, a scripted network, and a clock that stands still. */
export function startWebhookWorld(viewer: Viewer = CUSTOMER, programs = PROGRAMS) {
  const queue = startQueue();
  const { store } = queue;
  const clock = createVirtualClock();
  const network = scriptedPolicy();
  const watched = new Set<string>(programs.map(({ address }) => address));
  const isWatched = (address: string) => watched.has(address);
  const { outbox } = queue;
  const labels = new Map<string, string>(programs.map(({ address, label }) => [address, label]));
  const enqueue = createEnqueue(store, (program) => labels.get(program) ?? program, random);
  const made = { store, clock, seal: testSeal, policy: network.policy, isWatched, enqueue, random };
  const webhooks = createWebhooks({ ...made, wake: () => undefined });
  const secretsOf = createSecretsOf(store, testSeal);
  const lookUps = createRequestLog<string>();
  const services: WebhookServices = {
    webhooks,
    ...createWebhookHealth(store),
    deliveries: createAccountDeliveries(store),
    programs: createProgramList(store, programs),
    history: createHistory(store),
    enter: (userId) => lookUps(userId, clock.monotonic()),
    random,
  };
  const routes = webhookRoutes(services);
  const readings = createReadings(store, () => undefined);

  /** A webhook that must be made. */
  async function addWebhook(
    accountId: number,
    given: { url: string; programs?: string[]; description?: string },
  ) {
    const created = await webhooks.create(byAccount(accountId), given, never);
    if (created.kind !== 'created') throw new Error(JSON.stringify(created));
    return { id: created.webhook.id, secret: created.secret.reveal() };
  }

  /** Makes every attempt that is due now; `tookMs` of time go by in each. */
  async function attemptDue(script: (post: SeenPost) => Sent, tookMs = 0): Promise<void> {
    const { send } = createScriptedSend(script);
    const noteBroken = (error: unknown) => {
      throw error;
    };
    for (
      let claims = outbox.claim(clock.now(), []);
      claims.length > 0;
      claims = outbox.claim(clock.now(), [])
    )
      for (const claim of claims) {
        const result = await attempt(claim, { send, secretsOf, clock, noteBroken }, never);
        outbox.finish([{ ...result, endedAtMs: result.endedAtMs + tookMs }]);
      }
  }

  /** A reading that found this. */
  function save(states: ReadonlyMap<string, ProgramState>, contextSlot = 1_000) {
    const byAddress = new Map(
      programs.flatMap(({ address }) => {
        const state = states.get(address);
        return state === undefined ? [] : [[address, state] as const];
      }),
    );
    const reading = { contextSlot: BigInt(contextSlot), programs: byAddress };
    readings.save({ reading, checkedAtMs: clock.now() });
  }

  return {
    ...startConsole(viewer, routes, { clock }),
    queue,
    enqueue,
    store,
    clock,
    network,
    webhooks,
    routes,
    addWebhook,
    attemptDue,
    save,
    entries: (accountId: number) => createAudit(store).list({ accountId, limit: 100 }),
    [Symbol.dispose]: queue[Symbol.dispose],
  };
}

export type WebhookWorld = ReturnType<typeof startWebhookWorld>;
