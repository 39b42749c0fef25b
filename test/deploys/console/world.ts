import type { By } from '../../../deploys/accounts/audit.ts';
import { createKeys } from '../../../deploys/accounts/keys.ts';
import type { HashWork } from '../../../deploys/auth/passwords.ts';
import { SESSION_COOKIE } from '../../../deploys/auth/sessions.ts';
import type { User } from '../../../deploys/auth/users.ts';
import { composeConsole, type Installation, type Running } from '../../../deploys/compose.ts';
import { attempt } from '../../../deploys/delivery/send.ts';
import { createEnqueue } from '../../../deploys/outbox/enqueue.ts';
import { createOutbox } from '../../../deploys/outbox/outbox.ts';
import type { Sent } from '../../../deploys/outbox/outcome.ts';
import { createTakeDrained, type HourCell } from '../../../deploys/usage/redis-cells.ts';
import { createBlockTimeStore } from '../../../deploys/watch/block-time.ts';
import type { ProgramState } from '../../../deploys/watch/change.ts';
import { createReadings } from '../../../deploys/watch/readings.ts';
import type { WatchedProgram } from '../../../shared/watched.ts';
import { createSecretsOf } from '../../../deploys/webhooks/seal.ts';
import { createWebhooks } from '../../../deploys/webhooks/webhooks.ts';
import type { Clock } from '../../../shared/clock.ts';
import { spentOf, USAGE_MIGRATIONS } from '../../../shared/ledger/schema.ts';
import { addressOf } from '../../fakes/chain.ts';
import { createScriptedSend, type SeenPost } from '../../fakes/scripted-send.ts';
import { opened, silentLog } from '../../started/gateway.ts';
import { COMMAND_LINE, OPERATOR, ORIGIN, random, startAuth } from '../auth/people.ts';
import { emptyCell } from '../usage/ledger.ts';
import { never, scriptedPolicy, testSeal } from '../webhooks/started.ts';
import { pageOf } from './page-text.ts';

export const HOUR_MS = 3_600_000;

/** What differs from an installation with no gateway that watches two programs. */
export type Options = Readonly<{
  gateways?: readonly string[];
  /** The status of a gateway, by its host. */
  statusOf?: (host: string) => Response;
  installation?: Partial<Installation>;
  running?: Partial<Running>;
  programs?: readonly WatchedProgram[];
  /** At once and in plain text by default. */
  hashWork?: HashWork;
}>;

const PROGRAMS = ['A', 'B'].map((name) => ({ address: addressOf(name), label: `Program ${name}` }));

/**
 * The console with all of its services, as deploys composes it, over stores in memory, a scripted network and a clock
 * that stands still. `op@example.com` is an operator with a session.
 */
export function startWorld(options: Options = {}) {
  const { gateways = [], statusOf, installation, running, programs = PROGRAMS } = options;
  const ledger = opened(':memory:', USAGE_MIGRATIONS);
  const { clock, store, plans, deploys, audit, accounts, auth, made } = startAuth({
    rows: { signUp: true },
    spentOf: (id) => spentOf(ledger, id),
    ...(options.hashWork && { work: options.hashWork }),
  });
  const { note, list: entries } = audit;
  const keys = createKeys({ store, clock, random, note });
  const lines: unknown[] = [];
  const labels = new Map<string, string>(programs.map(({ address, label }) => [address, label]));
  const enqueue = createEnqueue(store, (program) => labels.get(program) ?? program, random);
  const outbox = createOutbox(store, random);
  const network = scriptedPolicy();
  const isWatched = (address: string) => labels.has(address);
  const kept = { store, clock, seal: testSeal, policy: network.policy, isWatched, enqueue, random };
  const webhooks = createWebhooks({ ...kept, wake: () => undefined });
  /** Pauses of a read in portions pass at once; a deadline waits for the clock. */
  const sleep: Clock['sleep'] = (ms, signal) => (ms > 1 ? clock.sleep(ms, signal) : Promise.resolve());
  const { console, maintain } = composeConsole(
    {
      config: { ...deploys, publicUrl: new URL(ORIGIN) },
      programs,
      store,
      ledgerReader: ledger,
      clock: { ...clock, sleep },
      fetch: (url) => Promise.resolve(statusOf?.(new URL(url).host) ?? new Response('', { status: 404 })),
      log: silentLog(lines),
      random,
    },
    {
      auth,
      clientAddressHeader: undefined,
      plans,
      rpcUrl: new URL('https://rpc.example.com'),
      installation: {
        gatewayUrls: gateways.map((host) => new URL(`http://${host}`)),
        storeSizes: () => [{ name: 'sluice.db', bytes: 1_234_567, walBytes: 32_768 }],
        ...installation,
      },
    },
    () => '192.0.2.1',
    {
      watcher: () => ({
        health: { isWell: true, sentence: 'ok: 45 programs were read 3 s ago at slot 1234.' },
        checkedAtMs: clock.now() - 3_000,
        contextSlot: 1_234n,
        programs: 45,
      }),
      deliveries: () => ({ isWell: true, sentence: '0 deliveries are due.' }),
      publication: () => undefined,
      webhooks,
      ...running,
    },
  );
  const { app } = console;

  /** A user who is signed in. */
  function session(user: User, agent = 'Firefox') {
    const token = auth.sessions.begin(user.id, agent, undefined);
    const cookie = `${SESSION_COOKIE}=${token}`;
    const ask = async (path: string, init: RequestInit = {}) => {
      const headers = { cookie, 'sec-fetch-site': 'same-origin', ...init.headers };
      return app.handle(new Request(`${ORIGIN}${path}`, { ...init, headers }));
    };
    return {
      user,
      token,
      cookie,
      ask,
      /** What stands on a page that must be there. */
      async get(path: string) {
        const response = await ask(path);
        if (response.status !== 200) throw new Error(`${path}: ${response.status} ${Bun.inspect(lines)}`);
        return pageOf(await response.text());
      },
      /** Sends a form as a page does; `page` is what it shows when it does not redirect. */
      async post(path: string, fields: Record<string, string> = {}, headers: Record<string, string> = {}) {
        const response = await ask(path, { method: 'POST', body: new URLSearchParams(fields), headers });
        const to = response.headers.get('location') ?? '';
        return {
          status: response.status,
          to,
          headers: response.headers,
          page: pageOf(await response.text()),
        };
      },
    };
  }

  function account(name: string, plan: string | null = 'trial') {
    const created = accounts.create(name, plan ?? undefined, COMMAND_LINE);
    if (created.kind !== 'account') throw new Error(created.kind);
    return created.account;
  }

  /** The session of a user of a new account that is 40 days old. */
  function customer(
    name = 'acme',
    plan: string | null = 'trial',
    email = `${name}@example.com`,
    agent?: string,
  ) {
    const { id } = account(name, plan);
    store.run('UPDATE accounts SET created_at_ms = ? WHERE id = ?', [clock.now() - 960 * HOUR_MS, id]);
    const user = made(email, { role: 'customer', accountId: id });
    const by: By = { accountId: id, actor: { kind: 'user', userId: user.id } };
    return { ...session(user, agent), accountId: id, by };
  }

  function addKey(name: string, to = 'acme') {
    const created = keys.create(to, name, COMMAND_LINE);
    if (created.kind !== 'created') throw new Error(created.kind);
    return created.made;
  }

  async function addWebhook(by: By, given: { url: string; programs?: string[]; description?: string }) {
    const created = await webhooks.create(by, given, never);
    if (created.kind !== 'created') throw new Error(Bun.inspect(created));
    return { id: created.webhook.id, secret: created.secret.reveal() };
  }

  /** Makes every attempt that is due now; each takes `tookMs`. */
  async function attemptDue(script: (post: SeenPost) => Sent, tookMs = 0): Promise<void> {
    const { send } = createScriptedSend(script);
    const secretsOf = createSecretsOf(store, testSeal);
    const noteBroken = (error: unknown) => {
      throw error;
    };
    for (
      let claims = outbox.claim(clock.now(), []);
      claims.length > 0;
      claims = outbox.claim(clock.now(), [])
    )
      for (const claim of claims) {
        const ended = await attempt(claim, { send, secretsOf, clock, noteBroken }, never);
        outbox.finish([{ ...ended, endedAtMs: ended.endedAtMs + tookMs }]);
      }
  }

  /** A deploy in `slot` that webhooks announce. */
  function upgrade(program: WatchedProgram['address'], slot: number) {
    createBlockTimeStore(store).save(BigInt(slot), Math.floor(clock.now() / 1_000) - 13);
    const deploy = { program, previousSlot: BigInt(slot - 1), deploySlot: BigInt(slot) };
    store.transaction(() => enqueue.deploys([deploy], clock.now())).immediate();
    while (outbox.release(clock.now()) === 'more');
  }

  /** A reading of the chain. */
  function save(states: readonly (readonly [WatchedProgram['address'], ProgramState])[], slot = 1_000n) {
    const reading = { contextSlot: slot, programs: new Map(states) };
    createReadings(store).replace({ reading, checkedAtMs: clock.now() });
  }

  const take = createTakeDrained(ledger);
  /** Counts usage in the ledger, `hoursAgo` before now; of the first account by default. */
  function count(cells: readonly (Partial<HourCell> & { hoursAgo?: number })[]) {
    const hour = Math.floor(clock.now() / HOUR_MS);
    const whole = cells.map(({ hoursAgo = 0, ...given }) => emptyCell({ hour: hour - hoursAgo, ...given }));
    take({ cells: whole, spent: [] });
  }

  return {
    maintain,
    app,
    clock,
    store,
    ledger,
    accounts,
    keys,
    auth,
    webhooks,
    enqueue,
    network,
    entries,
    /** What was done to an account, the newest first: `key.create user u1`. */
    actions: (accountId: number) =>
      entries({ accountId, limit: 100 }).map((one) => `${one.action} ${one.actorKind} ${one.actorId}`),
    lines,
    note,
    made,
    account,
    session,
    customer,
    addKey,
    addWebhook,
    attemptDue,
    upgrade,
    save,
    count,
    /** Sets what an account has used of its allowance. */
    spend: (accountId: number, charged: number) =>
      take({ cells: [], spent: [{ accountId, node: 'n1', charged, refunded: 0 }] }),
    operator: session(made('op@example.com', OPERATOR)),
    [Symbol.dispose]: () => {
      ledger.close();
      store.close();
    },
  };
}

export type World = ReturnType<typeof startWorld>;
export type Customer = ReturnType<World['customer']>;
