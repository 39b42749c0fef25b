import * as oidc from 'openid-client';
import type { Clock } from '../../shared/clock.ts';
import type { OidcConfig } from '../../shared/config/config.ts';
import { boundedText } from '../health/outbound.ts';
import { type ConsoleKeys, createTickets } from './console-keys.ts';
import type { From, TooMany } from './login.ts';
import type { SignUp } from './sign-up.ts';
import { readEmail, type User, type Users } from './users.ts';

type ProviderResult =
  | { readonly kind: 'right'; readonly user: User; readonly next: string }
  /** The browser came back without the ticket it left with, with another login's answer, or too late. */
  | { readonly kind: 'over' }
  /** The provider knows the person, and there is no such user here. */
  | { readonly kind: 'unknown' }
  /** A user signed up with this e-mail and it was never verified: the person at the provider may be another. */
  | { readonly kind: 'unverified' }
  /** The login of this e-mail is another person's at the provider. */
  | { readonly kind: 'linked-elsewhere' }
  | Unavailable
  | TooMany;

/** How long a login at the provider may take. */
export const AT_PROVIDER_MS = 10 * 60_000;

const RANDOM_BYTES = 32;
const ANSWER_SECONDS = 10;
const ANSWER_BYTES_MAX = 262_144;
/** How far the provider's clock may be from ours; ours is the system's, which the library reads. */
const CLOCK_SLACK_SECONDS = 60;
/** A provider changes its addresses once in years; an hour is what others take. */
const DISCOVERY_LASTS_MS = 3_600_000;

type Unavailable = { readonly kind: 'unavailable'; readonly reason: string };

/** The claims of an ID token. `email` only where the provider says that it is verified. */
type Claims = Readonly<{ subject: string; email: string | undefined }>;

type ProviderDeps = Readonly<{
  config: OidcConfig;
  redirectUri: string;
  fetch(url: string, init: RequestInit): Promise<Response>;
  users: Users;
  /** Absent, only who is a user already is let in. */
  signUp: SignUp | undefined;
  keys: ConsoleKeys;
  clock: Clock;
  random(bytes: number): Uint8Array;
}>;

/**
 * Login through an OpenID Connect provider, by a code with PKCE. What the browser must bring back is in a ticket of its own
 * cookie: the state, PKCE's verifier (RFC 7636) and the nonce of the ID token. The provider's document is read at the first
 * login and kept for an hour. Neither step rejects.
 */
export function createProviderLogin({ config, redirectUri, fetch, users, signUp, ...deps }: ProviderDeps) {
  const { issuer, clientId, clientSecret } = config;
  const { keys, clock, random } = deps;
  const tickets = createTickets(keys, 'provider', AT_PROVIDER_MS);
  const text = () => Buffer.from(random(RANDOM_BYTES)).toString('base64url');
  let known: Readonly<{ configuration: oidc.Configuration; untilMs: number }> | undefined;

  async function discover(): Promise<oidc.Configuration> {
    if (known !== undefined && clock.now() < known.untilMs) return known.configuration;
    const server = new URL(issuer);
    const metadata = { [oidc.clockTolerance]: CLOCK_SLACK_SECONDS };
    const configuration = await oidc.discovery(server, clientId, metadata, byMethod(clientSecret.reveal()), {
      timeout: ANSWER_SECONDS,
      [oidc.customFetch]: boundedFetch,
      // Signatures are checked although the tokens come straight from the provider over TLS.
      execute: [
        oidc.enableNonRepudiationChecks,
        ...(server.protocol === 'http:' ? [oidc.allowInsecureRequests] : []),
      ],
    });
    const { authorization_endpoint, token_endpoint, ...told } = configuration.serverMetadata();
    // The library knows providers of many tenants, whose issuer is a pattern: to us they would all be one.
    if (told.issuer !== issuer)
      throw new Error('the provider calls itself by another name than deploys.oidc.issuer');
    for (const endpoint of [authorization_endpoint, token_endpoint]) refuseUnsafe(endpoint ?? '');
    known = { configuration, untilMs: clock.now() + DISCOVERY_LASTS_MS };
    return configuration;
  }

  async function boundedFetch(url: string, { body, ...init }: oidc.CustomFetchOptions): Promise<Response> {
    refuseUnsafe(url);
    const response = await fetch(url, { ...init, ...(body && { body }), redirect: 'error' });
    const { status, headers } = response;
    const text = await boundedText(response, ANSWER_BYTES_MAX);
    if (text === undefined) throw new Error('the provider answered with too much');
    return new Response(text, { status, headers });
  }

  /** The provider's address for a login, and the ticket of what must come back; `next` is where the browser goes after. */
  async function begin(next: string) {
    const [state, verifier, nonce] = [text(), text(), text()];
    const url = oidc.buildAuthorizationUrl(await discover(), {
      redirect_uri: redirectUri,
      scope: 'openid email',
      state,
      nonce,
      code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    });
    const ticket = tickets.make({ state, verifier, nonce, next }, clock.now());
    return { kind: 'address', url, ticket } as const;
  }

  async function claimsOf(
    query: URLSearchParams,
    checks: oidc.AuthorizationCodeGrantChecks,
  ): Promise<Claims> {
    const back = new URL(redirectUri);
    back.search = query.toString();
    const tokens = await oidc.authorizationCodeGrant(await discover(), back, {
      ...checks,
      idTokenExpected: true,
    });
    const claims = tokens.claims();
    if (claims === undefined || claims.sub === '') throw new Error('the ID token names nobody');
    const { sub, azp, email, email_verified: isVerified } = claims;
    if (azp !== undefined && azp !== clientId) throw new Error('the ID token was given to another client');
    // A space parts them: an issuer is a URL and has none.
    const subject = `${issuer} ${sub}`;
    return { subject, email: typeof email === 'string' && isVerified === true ? email : undefined };
  }

  /**
   * The user of a subject; one who has the same e-mail is linked to it for good. Whoever signed up with a password may have
   * typed the e-mail of another, who must not come to use what the first has keys of: such a login is linked only from a
   * browser that is signed in to it.
   */
  function userOf({ subject, email: text }: Claims, from: From, next: string): ProviderResult {
    const linked = users.bySubject(subject);
    if (linked !== undefined) return { kind: 'right', user: linked, next };
    const email = text === undefined ? undefined : readEmail(text);
    if (email === undefined) return { kind: 'unknown' };
    const user = users.find(email);
    if (user !== undefined) {
      if (user.subject !== undefined) return { kind: 'linked-elsewhere' };
      if (!user.isEmailVerified && user.id !== from.signedInAs) return { kind: 'unverified' };
      return users.setSubject(user, subject) ? { kind: 'right', user, next } : { kind: 'linked-elsewhere' };
    }
    const made = signUp?.recognised(email, subject, from);
    if (made?.kind === 'too-many') return made;
    return made?.kind === 'created' ? { kind: 'right', user: made.user, next } : { kind: 'unknown' };
  }

  return {
    begin: (next: string) => orUnavailable(() => begin(next)),
    /** Who came back; `query` is that of the address the provider sent them to. */
    async finish(ticket: string | undefined, query: URLSearchParams, from: From): Promise<ProviderResult> {
      const kept = tickets.read(ticket, clock.now());
      const { state = '', verifier = '', nonce = '', next = '/' } = kept ?? {};
      if (kept === undefined || query.get('state') !== state || !query.has('code')) return { kind: 'over' };
      const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier };
      const claims = await orUnavailable(() => claimsOf(query, checks));
      return 'kind' in claims ? claims : userOf(claims, from, next);
    },
  };
}

/** How the client shows its secret: in the header, unless the provider says that it takes it in the body alone. */
function byMethod(secret: string): oidc.ClientAuth {
  return (server, ...request) => {
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    const isPost = !methods.includes('client_secret_basic') && methods.includes('client_secret_post');
    (isPost ? oidc.ClientSecretPost(secret) : oidc.ClientSecretBasic(secret))(server, ...request);
  };
}

/** An endpoint without TLS must be on this machine, also of a provider that is. */
function refuseUnsafe(address: string): void {
  const url = URL.parse(address);
  if (url === null || (url.protocol !== 'https:' && !isLoopback(url)))
    throw new Error('the provider names no safe endpoints');
}

/** The library's own words are general: what went wrong is its cause. Neither holds a token or a secret. */
async function orUnavailable<T>(act: () => Promise<T>): Promise<T | Unavailable> {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof Error)) return { kind: 'unavailable', reason: String(error) };
    const cause = error.cause instanceof Error ? ` (${error.cause.message})` : '';
    return { kind: 'unavailable', reason: `${error.message}${cause}` };
  }
}

/** Why nobody could log in under this address, in a sentence that says what to do; `undefined`: they can. */
export function consoleComplaint(publicUrl: URL): string | undefined {
  if (publicUrl.protocol === 'https:' || isLoopback(publicUrl)) return undefined;
  return `The console is off: browsers keep no login over plain http from ${publicUrl.host}. Set deploys.public_url to the https:// address that users open (a proxy with TLS in front of deploys.listen), or to http://127.0.0.1 with the port for use on this machine alone.`;
}

/** Whether only this machine is reached by the address. */
function isLoopback({ protocol, hostname }: URL): boolean {
  return (
    (protocol === 'http:' || protocol === 'https:') &&
    (hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname))
  );
}
