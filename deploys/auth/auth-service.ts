import type { Clock } from '../../shared/clock.ts';
import type { DeploysConfig } from '../../shared/config/config.ts';
import type { Store } from '../../shared/store/open.ts';
import type { Accounts } from '../accounts/accounts.ts';
import type { Audit } from '../accounts/audit.ts';
import type { ConsoleKeys } from './console-keys.ts';
import { createLogin } from './login.ts';
import { createHashing, type Hashing } from './passwords.ts';
import { createProviderLogin } from './provider.ts';
import { createSecondFactor } from './second-factor.ts';
import { cookieOf, createSessions, type Session, SESSION_COOKIE } from './sessions.ts';
import { createSignUp } from './sign-up.ts';
import { createUsers } from './users.ts';

export type AuthDeps = Readonly<{
  store: Store;
  config: Pick<DeploysConfig, 'signUp' | 'operatorsNeedSecondFactor' | 'oidc'>;
  keys: ConsoleKeys;
  note: Audit['note'];
  accounts: Pick<Accounts, 'create'>;
  /** Where the identity provider sends browsers back to. */
  providerReturnUrl: URL;
  fetch(url: string, init: RequestInit): Promise<Response>;
  clock: Clock;
  random(bytes: number): Uint8Array;
  /** The real one unless a test counts. */
  hashing?: Hashing;
}>;

export type AuthService = ReturnType<typeof createAuthService>;

/** Who may use the console, and how they show that they are who they are. */
export function createAuthService(deps: AuthDeps) {
  const { store, config, keys } = deps;
  const hashing = deps.hashing ?? createHashing();
  const users = createUsers(store, deps);
  const sessions = createSessions(store, deps);
  const secondFactor = createSecondFactor(store, deps);
  const login = createLogin({ ...deps, users, hashing, secondFactor });
  const signUp = createSignUp({ ...deps, users, hashing });
  const providerLogin =
    config.oidc &&
    createProviderLogin({
      ...deps,
      config: config.oidc,
      redirectUri: deps.providerReturnUrl.href,
      users,
      signUp: config.signUp ? signUp : undefined,
    });

  /** The session of a request, also one that must set up its second factor before it may see anything. */
  function sessionOf(request: Request): Session | undefined {
    const { method, headers } = request;
    const token = cookieOf(headers, SESSION_COOKIE);
    // A page that refreshes a part of itself does not count as a use: its user may be away.
    const isRefresh = method === 'GET' && headers.get('hx-request') === 'true';
    return token === undefined ? undefined : sessions.find(token, !isRefresh);
  }

  function mustEnrol({ role, hasSecondFactor }: Pick<Session, 'role' | 'hasSecondFactor'>): boolean {
    return config.operatorsNeedSecondFactor && role === 'operator' && !hasSecondFactor;
  }

  /** An operator who must set up a second factor first is no viewer until then. */
  const viewerOf: ViewerOf = async (request) => {
    const session = sessionOf(request);
    if (session === undefined || mustEnrol(session)) return undefined;
    const { userId, email, role, accountId } = session;
    return { userId, email, role, accountId };
  };

  return {
    config,
    users,
    sessions,
    secondFactor,
    login,
    signUp,
    providerLogin,
    hashing,
    keys,
    sessionOf,
    mustEnrol,
    viewerOf,
  };
}

/** Who looks at the console: an operator sees every account and may have none, a customer sees their own. */
export type Viewer = Pick<Session, 'userId' | 'email' | 'role' | 'accountId'>;

/** Finds who a request's session belongs to; `undefined`: there is no session, or it has ended. Never throws for a bad cookie. */
export type ViewerOf = (request: Request) => Promise<Viewer | undefined>;

/** Whether a change comes from a page of the console: `Sec-Fetch-Site` says so, or `Origin` where that is missing; with neither it does not. */
export function isSameOrigin(request: Request, origin: string): boolean {
  const site = request.headers.get('sec-fetch-site');
  if (site !== null) return site === 'same-origin';
  return request.headers.get('origin') === origin;
}
