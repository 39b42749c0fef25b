import type { Clock } from '../../shared/clock.ts';
import type { DeploysConfig } from '../../shared/config/config.ts';
import type { Store } from '../../shared/store/open.ts';
import type { Audit } from '../audit/audit.ts';
import type { ConsoleKeys } from './console-keys.ts';
import { cookieOf, SESSION_COOKIE } from './cookies.ts';
import { createHashing, type Hashing } from './hashing.ts';
import { createLogin } from './login.ts';
import { createProviderLogin } from './oidc/login.ts';
import { createProvider } from './oidc/provider.ts';
import { createSecondFactor } from './second-factor.ts';
import { createSessions, type Session } from './sessions.ts';
import { createSignUp, type OpenAccount } from './sign-up.ts';
import { createUsers } from './users.ts';

export type AuthDeps = Readonly<{
  store: Store;
  config: Pick<DeploysConfig, 'signUp' | 'operatorsNeedSecondFactor' | 'oidc'>;
  keys: ConsoleKeys;
  note: Audit['note'];
  openAccount: OpenAccount;
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
  const { store, config, keys, clock, random } = deps;
  const hashing = deps.hashing ?? createHashing();
  const users = createUsers(store, deps);
  const sessions = createSessions(store, deps);
  const secondFactor = createSecondFactor(store, deps);
  const login = createLogin({ store, users, hashing, secondFactor, keys, clock, random });
  const signUp = createSignUp({ ...deps, users, hashing });
  const { oidc } = config;
  const redirectUri = deps.providerReturnUrl.href;
  const providerLogin =
    oidc &&
    createProviderLogin({
      provider: createProvider({ config: oidc, redirectUri, fetch: deps.fetch, clock }),
      users,
      signUp: config.signUp ? signUp : undefined,
      keys,
      clock,
      random,
    });

  /** The session of a request, also one that must set up its second factor before it may see anything. */
  function sessionOf(request: Request): Session | undefined {
    const token = cookieOf(request.headers, SESSION_COOKIE);
    return token === undefined ? undefined : sessions.find(token, !isRefresh(request));
  }

  function mustEnrol({ role, hasSecondFactor }: Pick<Session, 'role' | 'hasSecondFactor'>): boolean {
    return config.operatorsNeedSecondFactor && role === 'operator' && !hasSecondFactor;
  }

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
  };
}

/** Whether a page that stands open asks by itself for a part of it again: nobody needs to be there for that. */
function isRefresh({ method, headers }: Request): boolean {
  return method === 'GET' && headers.get('hx-request') === 'true';
}
