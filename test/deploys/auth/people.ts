import { createAccounts } from '../../../deploys/accounts/accounts.ts';
import { type Actor, createAudit } from '../../../deploys/accounts/audit.ts';
import { createClientAddresses } from '../../../deploys/auth/attempts.ts';
import { type AuthDeps, createAuthService } from '../../../deploys/auth/auth-service.ts';
import { createConsoleKeys } from '../../../deploys/auth/console-keys.ts';
import { createHashing, type HashWork } from '../../../deploys/auth/passwords.ts';
import { totpOf } from '../../../deploys/auth/second-factor.ts';
import { type Membership, readEmail } from '../../../deploys/auth/users.ts';
import { DEPLOYS_MIGRATIONS } from '../../../deploys/schema.ts';
import { OPEN_PAGES } from '../../../deploys/console/pages.ts';
import { createConsole } from '../../../deploys/console/router.ts';
import { configFrom } from '../../../shared/config/config.ts';
import { ACCOUNTS_MIGRATIONS } from '../../../shared/keys/schema.ts';
import { Secret } from '../../../shared/secret.ts';
import { createVirtualClock } from '../../fakes/chain-clock.ts';
import { opened } from '../../started/gateway.ts';

export const ORIGIN = 'https://console.example.com';
export const ADA = 'ada@example.com';
export const PASSWORD = 'four plain words together';
/** Who makes what these tests begin with. */
export const COMMAND_LINE: Actor = { kind: 'command-line' };
export const OPERATOR: Membership = { role: 'operator', accountId: undefined };

export const random = (bytes: number) => crypto.getRandomValues(new Uint8Array(bytes));
export const testKeys = createConsoleKeys([new Secret(Buffer.alloc(32, 1).toString('base64'))], random);

/** Quick, and as good as the real one for everything but secrecy. */
export const plainWork: HashWork = {
  hash: (password) => Promise.resolve(`plain ${password}`),
  verify: (password, hash) => Promise.resolve(hash === `plain ${password}`),
};

type AuthOptions = Readonly<{
  rows?: Partial<AuthDeps['config']>;
  work?: HashWork;
  fetch?: AuthDeps['fetch'];
  spentOf?(id: number): number;
}>;

/** Accounts and who may log in, over a store in memory and a clock that stands still. */
export function startAuth({ rows, work = plainWork, fetch = unasked, spentOf = () => 0 }: AuthOptions) {
  const clock = createVirtualClock();
  const store = opened(':memory:', { ...ACCOUNTS_MIGRATIONS, ...DEPLOYS_MIGRATIONS });
  const result = configFrom({}, {});
  if (result.kind === 'problems') throw new Error('the default config is good');
  const { plans, deploys } = result.config;
  const audit = createAudit(store);
  const accounts = createAccounts({ store, plans, spentOf, clock, note: audit.note });
  const auth = createAuthService({
    store,
    config: { signUp: false, operatorsNeedSecondFactor: false, oidc: undefined, ...rows },
    keys: testKeys,
    note: audit.note,
    accounts,
    providerReturnUrl: new URL('/login/return', ORIGIN),
    fetch,
    clock,
    random,
    hashing: createHashing(work),
  });

  /** A user with `PASSWORD` who must be made, by the command line. */
  function made(email: string, membership: Membership = OPERATOR) {
    const read = readEmail(email);
    if (read === undefined) throw new Error(`${email} is no e-mail`);
    const user = { email: read, membership, passwordHash: `plain ${PASSWORD}` };
    const created = auth.users.create(user, COMMAND_LINE);
    if (created.kind !== 'created') throw new Error(created.kind);
    return created.user;
  }
  return { clock, store, plans, deploys, audit, accounts, auth, made };
}

const unasked = () => Promise.reject(new Error('nothing may be asked'));

/** Who may log in, with their pages. */
export function startPeople(
  rows?: AuthOptions['rows'],
  work?: AuthOptions['work'],
  fetch?: AuthOptions['fetch'],
) {
  const started = startAuth({ ...(rows && { rows }), ...(work && { work }), ...(fetch && { fetch }) });
  const { clock, store, accounts, auth } = started;
  const addresses = createClientAddresses(undefined);
  const reasons: string[] = [];
  const noteUnavailable = (reason: string) => reasons.push(reason);
  const { app } = createConsole(
    {
      viewerOf: auth.viewerOf,
      accountOf: accounts.findById,
      clock,
      origin: ORIGIN,
      takeChange: () => ({ kind: 'allowed' }),
      noteBroken: (error) => {
        throw error;
      },
    },
    { origin: ORIGIN, auth, addressOf: addresses.of, noteUnavailable },
    OPEN_PAGES,
  );

  return {
    ...started,
    /** The addresses that there are. */
    paths: new Set(app.routes.map(({ path }) => path)),
    reasons,
    viewerOf: auth.viewerOf,
    handle: (request: Request) => Promise.resolve(app.handle(request)),
    /** A browser without scripts: it keeps cookies and says where its forms come from. */
    visitor: (address = '192.0.2.1') =>
      createVisitor(ORIGIN, (request) => {
        addresses.note(request, address);
        return app.handle(request);
      }),
    /** The code that an authenticator app with this secret shows at this instant. */
    codeNow: (secret: Uint8Array) => totpOf(secret, '').generate({ timestamp: clock.now() }),
    [Symbol.dispose]: () => store.close(),
  };
}

type Ask = (request: Request) => Response | Promise<Response>;

/** Somebody at `origin` who keeps cookies as browsers do, without their rules for who may set which. */
export function createVisitor(origin: string, ask: Ask) {
  const cookies = new Map<string, string>();

  /** The request that this visitor would send, for what takes one. */
  function request(path = '/', init: RequestInit = {}): Request {
    const headers = new Headers(init.headers);
    const carried = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    if (carried !== '' && !headers.has('cookie')) headers.set('cookie', carried);
    return new Request(new URL(path, origin).href, { ...init, headers });
  }

  async function send(path: string, init: RequestInit): Promise<Response> {
    const response = await ask(request(path, init));
    for (const line of response.headers.getSetCookie()) {
      const [pair = '', ...attributes] = line.split('; ');
      const [name = '', value = ''] = pair.split('=', 2);
      if (attributes.includes('Max-Age=0')) cookies.delete(name);
      else cookies.set(name, value);
    }
    return response;
  }

  return {
    cookies,
    send,
    get: (path: string, headers: Record<string, string> = {}) => send(path, { headers }),
    /** Posts a form as a page of the console does, unless `headers` say otherwise. */
    post: (
      path: string,
      fields: Record<string, string> = {},
      headers: Record<string, string> = { 'sec-fetch-site': 'same-origin' },
    ) => send(path, { method: 'POST', headers, body: new URLSearchParams(fields) }),
    request,
  };
}

export type Visitor = ReturnType<typeof createVisitor>;

/** The membership of a customer of a new account. */
export function customerOf({ accounts }: ReturnType<typeof startPeople>) {
  const made = accounts.create('acme', 'trial', COMMAND_LINE);
  if (made.kind !== 'account') throw new Error(made.kind);
  return { role: 'customer', accountId: made.account.id } as const;
}

/** The login with Ada, an operator, who has logged in from the first address. */
export async function startSignedIn(rows: Partial<AuthDeps['config']> = {}, work?: HashWork) {
  const started = startPeople(rows, work);
  const user = started.made(ADA);
  const visitor = started.visitor();
  await logIn(visitor, ADA);
  return { ...started, user, ada: visitor, viewer: () => started.viewerOf(visitor.request()) };
}

/** Logs in with `PASSWORD`; gives the answer. */
export function logIn(visitor: Visitor, email: string, next = '/'): Promise<Response> {
  return visitor.post('/login', { email, password: PASSWORD, next });
}
