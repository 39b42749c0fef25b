import {
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  calculatePKCECodeChallenge,
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  clockTolerance,
  type Configuration,
  customFetch,
  type CustomFetchOptions,
  discovery,
  enableNonRepudiationChecks,
} from 'openid-client';
import type { Clock } from '../../../shared/clock.ts';
import type { OidcConfig } from '../../../shared/config/oidc.ts';
import { isLoopback } from '../console-complaint.ts';

/** What a login in progress must bring back: its state, PKCE's verifier (RFC 7636) and the nonce of the ID token. */
export type Proof = Readonly<{ state: string; verifier: string; nonce: string }>;

/** What an ID token says of somebody. `email` only where the provider says that it is verified. */
export type Claims = Readonly<{ subject: string; email: string | undefined }>;

export type Unavailable = { readonly kind: 'unavailable'; readonly reason: string };

/** An OpenID Connect provider, asked for a code with PKCE. Neither rejects. */
export type Provider = Readonly<{
  /** Where the browser is sent; it comes back with the state and a code. */
  begin(proof: Proof): Promise<{ readonly kind: 'address'; readonly url: URL } | Unavailable>;
  /** Who came back with `query`. */
  finish(query: URLSearchParams, proof: Proof): Promise<({ readonly kind: 'claims' } & Claims) | Unavailable>;
}>;

type Deps = Readonly<{
  config: OidcConfig;
  /** Where the provider sends the browser back to. */
  redirectUri: string;
  fetch(url: string, init: RequestInit): Promise<Response>;
  clock: Clock;
}>;

const ANSWER_SECONDS = 10;
const ANSWER_BYTES_MAX = 262_144;
/** How far the provider's clock may be from ours; ours is the system's, which the library reads. */
const CLOCK_SLACK_SECONDS = 60;
/** A provider changes its addresses once in years; an hour is what others take. */
const DISCOVERY_LASTS_MS = 3_600_000;

/** The provider of the config. Its document is read at the first login and kept for an hour. */
export function createProvider({ config, redirectUri, fetch, clock }: Deps): Provider {
  const { issuer, clientId, clientSecret } = config;
  let known: Readonly<{ configuration: Configuration; untilMs: number }> | undefined;

  async function discover(): Promise<Configuration> {
    if (known !== undefined && clock.now() < known.untilMs) return known.configuration;
    const server = new URL(issuer);
    const metadata = { [clockTolerance]: CLOCK_SLACK_SECONDS };
    const configuration = await discovery(server, clientId, metadata, byMethod(clientSecret.reveal()), {
      timeout: ANSWER_SECONDS,
      [customFetch]: boundedFetch,
      // Signatures are checked although the tokens come straight from the provider over TLS.
      execute: [enableNonRepudiationChecks, ...(server.protocol === 'http:' ? [allowInsecureRequests] : [])],
    });
    const { authorization_endpoint, token_endpoint, ...told } = configuration.serverMetadata();
    // The library knows providers of many tenants, whose issuer is a pattern: to us they would all be one.
    if (told.issuer !== issuer)
      throw new Error('the provider calls itself by another name than deploys.oidc.issuer');
    for (const endpoint of [authorization_endpoint, token_endpoint]) refuseUnsafe(endpoint ?? '');
    known = { configuration, untilMs: clock.now() + DISCOVERY_LASTS_MS };
    return configuration;
  }

  async function boundedFetch(url: string, { body, ...init }: CustomFetchOptions): Promise<Response> {
    refuseUnsafe(url);
    const response = await fetch(url, { ...init, ...(body && { body }), redirect: 'error' });
    const { status, headers } = response;
    return new Response(await boundedText(response), { status, headers });
  }

  async function recognise(query: URLSearchParams, { state, verifier, nonce }: Proof): Promise<Claims> {
    const back = new URL(redirectUri);
    back.search = query.toString();
    const tokens = await authorizationCodeGrant(await discover(), back, {
      expectedState: state,
      expectedNonce: nonce,
      pkceCodeVerifier: verifier,
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

  return {
    async begin({ state, verifier, nonce }) {
      try {
        const url = buildAuthorizationUrl(await discover(), {
          redirect_uri: redirectUri,
          scope: 'openid email',
          state,
          nonce,
          code_challenge: await calculatePKCECodeChallenge(verifier),
          code_challenge_method: 'S256',
        });
        return { kind: 'address', url };
      } catch (error) {
        return unavailable(error);
      }
    },
    async finish(query, proof) {
      try {
        return { kind: 'claims', ...(await recognise(query, proof)) };
      } catch (error) {
        return unavailable(error);
      }
    },
  };
}

/** How the client shows its secret: in the header, unless the provider says that it takes it in the body alone. */
function byMethod(secret: string): ClientAuth {
  return (server, ...request) => {
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    const isPost = !methods.includes('client_secret_basic') && methods.includes('client_secret_post');
    (isPost ? ClientSecretPost(secret) : ClientSecretBasic(secret))(server, ...request);
  };
}

/** An endpoint without TLS must be on this machine, also of a provider that is. */
function refuseUnsafe(address: string): void {
  const url = URL.parse(address);
  if (url === null || (url.protocol !== 'https:' && !isLoopback(url)))
    throw new Error('the provider names no safe endpoints');
}

async function boundedText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > ANSWER_BYTES_MAX) throw new Error('the provider answered with too much');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** The library's own words are general: what went wrong is its cause. Neither holds a token or a secret. */
function unavailable(error: unknown): Unavailable {
  if (!(error instanceof Error)) return { kind: 'unavailable', reason: String(error) };
  const cause = error.cause instanceof Error ? ` (${error.cause.message})` : '';
  return { kind: 'unavailable', reason: `${error.message}${cause}` };
}
