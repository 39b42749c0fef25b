import { createHash } from 'node:crypto';
import type { Clock } from '../../../shared/clock.ts';
import type { OidcConfig } from '../../../shared/config/oidc.ts';
import { type Claims, isObject, readIdToken } from './claims.ts';

/** What a login in progress must bring back: PKCE's verifier (RFC 7636) and the nonce of the ID token. */
export type Proof = Readonly<{ verifier: string; nonce: string }>;

export type Unavailable = { readonly kind: 'unavailable'; readonly reason: string };

/** An OpenID Connect provider, asked for a code with PKCE. Neither rejects. */
export type Provider = Readonly<{
  /** Where the browser is sent; it comes back with `state` and a code. */
  begin(state: string, proof: Proof): Promise<{ readonly kind: 'address'; readonly url: URL } | Unavailable>;
  /** Who came back with `code`. */
  finish(code: string, proof: Proof): Promise<({ readonly kind: 'claims' } & Claims) | Unavailable>;
}>;

type Endpoints = Readonly<{ authorization: URL; token: URL; usesPost: boolean }>;
type Deps = Readonly<{
  config: OidcConfig;
  /** Where the provider sends the browser back to. */
  redirectUri: string;
  fetch(url: string, init: RequestInit): Promise<Response>;
  clock: Clock;
}>;

const ANSWER_MS = 10_000;
const ANSWER_BYTES_MAX = 262_144;
/** A provider changes its addresses once in years; an hour is what others take. */
const DISCOVERY_LASTS_MS = 3_600_000;

/** The provider of the config. Its document is read at the first login and kept for an hour. */
export function createProvider({ config, redirectUri, fetch, clock }: Deps): Provider {
  const { issuer, clientId, clientSecret } = config;
  let known: Readonly<{ endpoints: Endpoints; untilMs: number }> | undefined;

  async function discover(): Promise<Endpoints> {
    if (known !== undefined && clock.now() < known.untilMs) return known.endpoints;
    const document = await ask(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`, {});
    const endpoints = endpointsFrom(document, issuer);
    if (typeof endpoints === 'string') throw new Error(endpoints);
    known = { endpoints, untilMs: clock.now() + DISCOVERY_LASTS_MS };
    return endpoints;
  }

  async function ask(url: string, init: RequestInit): Promise<Record<string, unknown>> {
    const response = await fetch(url, { ...init, redirect: 'error', signal: AbortSignal.timeout(ANSWER_MS) });
    if (!response.ok) {
      await response.body?.cancel();
      throw new Error(`the provider answered with ${response.status}`);
    }
    const value: unknown = JSON.parse(await boundedText(response));
    if (!isObject(value)) throw new Error('the provider did not answer with an object');
    return value;
  }

  async function exchange(code: string, { verifier, nonce }: Proof): Promise<Claims | string> {
    const { token, usesPost } = await discover();
    const body = new URLSearchParams({
      grant_type: 'authorization_code',
      code,
      redirect_uri: redirectUri,
      code_verifier: verifier,
    });
    const headers = new Headers({ accept: 'application/json' });
    if (usesPost) {
      body.set('client_id', clientId);
      body.set('client_secret', clientSecret.reveal());
    } else headers.set('authorization', basic(clientId, clientSecret.reveal()));
    const answer = await ask(token.href, { method: 'POST', headers, body });
    return readIdToken(answer['id_token'], { issuer, clientId, nonce, nowMs: clock.now() });
  }

  return {
    async begin(state, { verifier, nonce }) {
      try {
        const url = new URL((await discover()).authorization);
        const challenge = createHash('sha256').update(verifier).digest('base64url');
        const query = {
          response_type: 'code',
          client_id: clientId,
          redirect_uri: redirectUri,
          scope: 'openid email',
          state,
          nonce,
          code_challenge: challenge,
          code_challenge_method: 'S256',
        };
        for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
        return { kind: 'address', url };
      } catch (error) {
        return unavailable(error);
      }
    },
    async finish(code, proof) {
      try {
        const claims = await exchange(code, proof);
        return typeof claims === 'string' ? unavailable(claims) : { kind: 'claims', ...claims };
      } catch (error) {
        return unavailable(error);
      }
    },
  };
}

function endpointsFrom(document: Record<string, unknown>, issuer: string): Endpoints | string {
  if (document['issuer'] !== issuer)
    return 'the provider calls itself by another name than deploys.oidc.issuer';
  const authorization = secureUrl(document['authorization_endpoint']);
  const token = secureUrl(document['token_endpoint']);
  if (authorization === undefined || token === undefined) return 'the provider names no safe endpoints';
  const methods = document['token_endpoint_auth_methods_supported'];
  const usesPost =
    Array.isArray(methods) &&
    !methods.includes('client_secret_basic') &&
    methods.includes('client_secret_post');
  return { authorization, token, usesPost };
}

/** TLS stands in for the signature of an ID token, so an endpoint without it must be on this machine. */
function secureUrl(value: unknown): URL | undefined {
  if (typeof value !== 'string' || !URL.canParse(value)) return undefined;
  const url = new URL(value);
  return url.protocol === 'https:' || isLoopback(url) ? url : undefined;
}

/** Whether only this machine is reached by the address. */
export function isLoopback({ protocol, hostname }: URL): boolean {
  return (
    (protocol === 'http:' || protocol === 'https:') &&
    (hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname))
  );
}

/** RFC 6749 2.3.1: both are form-encoded first. */
function basic(id: string, secret: string): string {
  const encoded = (text: string) => new URLSearchParams({ x: text }).toString().slice('x='.length);
  return `Basic ${Buffer.from(`${encoded(id)}:${encoded(secret)}`).toString('base64')}`;
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

function unavailable(error: unknown): Unavailable {
  return { kind: 'unavailable', reason: error instanceof Error ? error.message : String(error) };
}
