import { createHash } from 'node:crypto';

const RS256 = {
  name: 'RSASSA-PKCS1-v1_5',
  modulusLength: 2_048,
  publicExponent: new Uint8Array([1, 0, 1]),
  hash: 'SHA-256',
};

/** Made once: that takes a while. */
const KEYS = crypto.subtle.generateKey(RS256, true, ['sign', 'verify']);

/** A token of `claims` as RFC 7515 has it, with RS256. */
async function signedBy(key: CryptoKey, claims: object): Promise<string> {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const text = `${part({ alg: 'RS256' })}.${part(claims)}`;
  const signature = await crypto.subtle.sign(RS256, key, Buffer.from(text));
  return `${text}.${Buffer.from(signature).toString('base64url')}`;
}

/** What the provider says of whoever logs in; a member that is `undefined` is left out. */
export type Person = Readonly<Record<string, unknown>>;

export type ProviderOptions = Readonly<{
  clientId: string;
  clientSecret: string;
  /** What the ID token says instead of what it should. */
  claims?: (right: Record<string, unknown>) => Record<string, unknown>;
  /** How the ID token is signed instead of by the provider's key with RS256. */
  sign?: (right: string) => string | Promise<string>;
  /** What the browser brings back beside the right things, or instead of them. */
  back?: Record<string, string>;
  /** What the discovery document says instead of what it should. */
  document?: (right: Record<string, unknown>) => Record<string, unknown>;
  nowMs: () => number;
}>;

/** An OpenID Connect provider over plain http on this machine, whose one user agrees at once. It checks what a real one checks. */
export async function startIdentityProvider(person: Person, options: ProviderOptions) {
  const keys = await KEYS;
  const jwk = { ...(await crypto.subtle.exportKey('jwk', keys.publicKey)), alg: 'RS256', use: 'sig' };
  const codes = new Map<string, Readonly<{ challenge: string; nonce: string; redirectUri: string }>>();
  const asked: string[] = [];
  const { clientId, clientSecret } = options;
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    reusePort: false,
    async fetch(request) {
      const url = new URL(request.url);
      asked.push(`${request.method} ${url.pathname}`);
      if (url.pathname === '/.well-known/openid-configuration') return Response.json(documentOf());
      if (url.pathname === '/keys') return Response.json({ keys: [jwk] });
      if (url.pathname === '/authorize') return authorize(url);
      if (url.pathname === '/token' && request.method === 'POST') return token(request);
      return new Response('not found', { status: 404 });
    },
  });
  const issuer = server.url.origin;

  function documentOf(): Record<string, unknown> {
    const right = {
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      jwks_uri: `${issuer}/keys`,
    };
    return options.document?.(right) ?? right;
  }

  function authorize({ searchParams }: URL): Response {
    const ask = (name: string) => searchParams.get(name) ?? '';
    const isRight =
      ask('response_type') === 'code' &&
      ask('client_id') === clientId &&
      ask('code_challenge_method') === 'S256' &&
      ask('scope').split(' ').includes('openid');
    if (!isRight) return new Response('bad request', { status: 400 });
    const code = crypto.randomUUID();
    const redirectUri = ask('redirect_uri');
    codes.set(code, { challenge: ask('code_challenge'), nonce: ask('nonce'), redirectUri });
    const back = new URL(redirectUri);
    back.searchParams.set('code', code);
    back.searchParams.set('state', ask('state'));
    for (const [name, value] of Object.entries(options.back ?? {})) back.searchParams.set(name, value);
    return Response.redirect(back.href, 302);
  }

  async function token(request: Request): Promise<Response> {
    const form = new URLSearchParams(await request.text());
    const code = form.get('code') ?? '';
    const known = codes.get(code);
    codes.delete(code); // a code is for one use
    // RFC 6749 2.3.1: both halves are form-encoded.
    const encoded = new URLSearchParams({ [clientId]: clientSecret }).toString().replace('=', ':');
    const expected = `Basic ${Buffer.from(encoded).toString('base64')}`;
    const takesBody = documentOf()['token_endpoint_auth_methods_supported'] !== undefined;
    const isClient = takesBody
      ? form.get('client_id') === clientId && form.get('client_secret') === clientSecret
      : request.headers.get('authorization') === expected;
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url');
    const isRight =
      form.get('grant_type') === 'authorization_code' &&
      known?.challenge === challenge &&
      known.redirectUri === form.get('redirect_uri');
    if (!isClient || !isRight) return Response.json({ error: 'invalid_grant' }, { status: 400 });
    const right = {
      iss: issuer,
      aud: clientId,
      iat: Math.floor(options.nowMs() / 1_000),
      exp: Math.floor(options.nowMs() / 1_000) + 300,
      nonce: known.nonce,
      ...person,
    };
    const claims = options.claims?.(right) ?? right;
    const rightToken = await signedBy(keys.privateKey, claims);
    const idToken = (await options.sign?.(rightToken)) ?? rightToken;
    return Response.json({ access_token: 'a', token_type: 'Bearer', id_token: idToken });
  }

  return { issuer, asked, [Symbol.asyncDispose]: () => server.stop(true) };
}
