import { createAudit } from '../../../deploys/accounts/audit.ts';
import { createAuthService } from '../../../deploys/auth/auth-service.ts';
import { createHashing, type HashWork } from '../../../deploys/auth/passwords.ts';
import { SESSION_COOKIE } from '../../../deploys/auth/sessions.ts';
import { type Place, readEmail, type User } from '../../../deploys/auth/users.ts';
import { composeConsole, type Installation, type Running } from '../../../deploys/compose.ts';
import { DEPLOYS_MIGRATIONS } from '../../../deploys/schema.ts';
import { COMMAND_LINE, OPERATOR, ORIGIN, plainWork, random, testKeys } from '../auth/people.ts';
import { createAccounts } from '../../../deploys/accounts/accounts.ts';
import { createKeys } from '../../../deploys/accounts/keys.ts';
import type { WatchedProgram } from '../../../deploys/watch/watched.ts';
import type { Webhooks } from '../../../deploys/webhooks/webhooks.ts';
import type { Clock } from '../../../shared/clock.ts';
import type { Store } from '../../../shared/store/open.ts';
import { configFrom } from '../../../shared/config/config.ts';
import { ACCOUNTS_MIGRATIONS } from '../../../shared/keys/schema.ts';
import { spentOf, USAGE_MIGRATIONS } from '../../../shared/ledger/schema.ts';
import { createVirtualClock } from '../../fakes/chain-clock.ts';
import { opened, silentLog } from '../../started/gateway.ts';
import { pageOf } from './page-text.ts';

/** The status of a gateway as `/status.json` says it. */
export type StatusOf = (host: string) => Response | Promise<Response>;

/** What differs from an installation of one gateway that answers nothing. */
export type Options = Readonly<{
  gateways?: readonly string[];
  statusOf?: StatusOf;
  installation?: Partial<Installation>;
  running?: Partial<Running>;
  programs?: readonly WatchedProgram[];
  signUp?: boolean;
  /** Hashes passwords; at once and in plain text unless told otherwise. */
  hashWork?: HashWork;
  /** Absent, no webhooks are kept. */
  webhooksIn?: (store: Store, clock: Clock) => Webhooks;
}>;

/**
 * The console with all of its services, as deploys makes it, over stores in memory and a clock that stands still. Who
 * asks has a session; `op@example.com` is an operator.
 */
export function startOperatorWorld(options: Options = {}) {
  const { gateways = [], statusOf, installation, running, programs = [], signUp = false } = options;
  const clock = createVirtualClock();
  const store = opened(':memory:', { ...ACCOUNTS_MIGRATIONS, ...DEPLOYS_MIGRATIONS });
  const ledger = opened(':memory:', USAGE_MIGRATIONS);
  const result = configFrom({}, {});
  if (result.kind === 'problems') throw new Error('the default config is good');
  const { plans, deploys } = result.config;
  const { note, list: entries } = createAudit(store);
  const accounts = createAccounts({ store, plans, spentOf: (id) => spentOf(ledger, id), clock, note });
  const lines: unknown[] = [];
  const publicUrl = new URL(ORIGIN);
  const auth = createAuthService({
    store,
    config: { ...deploys, signUp },
    providerReturnUrl: new URL('/login/return', ORIGIN),
    keys: testKeys,
    note,
    accounts,
    fetch: () => Promise.reject(new Error('nothing may be asked')),
    clock,
    random,
    hashing: createHashing(options.hashWork ?? plainWork),
  });
  /** The pauses in what is read in parts pass at once; what has a deadline waits for the clock. */
  const sleep: Clock['sleep'] = (ms, signal) => (ms > 1 ? clock.sleep(ms, signal) : Promise.resolve());
  const tended = composeConsole(
    {
      config: { ...deploys, publicUrl },
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
      webhooks: options.webhooksIn?.(store, clock),
      ...running,
    },
  );
  const { app } = tended.console;

  function made(email: string, place: Place): User {
    const read = readEmail(email);
    if (read === undefined) throw new Error(`${email} is no e-mail`);
    const created = auth.users.create(
      { email: read, place, passwordHash: 'plain' },
      { kind: 'command-line' },
    );
    if (created.kind !== 'created') throw new Error(created.kind);
    return created.user;
  }

  /** Somebody who is signed in. */
  function session(user: User) {
    const cookie = `${SESSION_COOKIE}=${auth.sessions.begin(user.id, 'Firefox', undefined)}`;
    const ask = async (path: string, init: RequestInit = {}) => {
      const headers = { cookie, 'sec-fetch-site': 'same-origin', ...init.headers };
      return app.handle(new Request(`${ORIGIN}${path}`, { ...init, headers }));
    };
    return {
      user,
      cookie,
      ask,
      /** What stands on a page that must be there. */
      async get(path: string) {
        const response = await ask(path);
        if (response.status !== 200) throw new Error(`${path}: ${response.status} ${Bun.inspect(lines)}`);
        return pageOf(await response.text());
      },
      /** Sends a form as a page does; gives status, where it sends, and what stands there if it answers itself. */
      async post(path: string, fields: Record<string, string> = {}) {
        const response = await ask(path, { method: 'POST', body: new URLSearchParams(fields) });
        const text = await response.text();
        return { status: response.status, to: response.headers.get('location'), page: pageOf(text) };
      },
    };
  }

  function account(name: string, plan: string | null = 'trial') {
    const created = accounts.create(name, plan ?? undefined, COMMAND_LINE);
    if (created.kind !== 'account') throw new Error(created.kind);
    return created.account;
  }

  return {
    app,
    clock,
    store,
    ledger,
    accounts,
    keys: createKeys({ store, clock, random, note }),
    auth,
    plans,
    entries,
    lines,
    note,
    made,
    account,
    session,
    operator: session(made('op@example.com', OPERATOR)),
    [Symbol.dispose]: () => {
      ledger.close();
      store.close();
    },
  };
}

export type OperatorWorld = ReturnType<typeof startOperatorWorld>;
