import { createHash } from 'node:crypto';

/** What the provider says of whoever logs in; a member that is `undefined` is left out. */
export type Person = Readonly<Record<string, unknown>>;

export type ProviderOptions = Readonly<{
  clientId: string;
  clientSecret: string;
  /** What the ID token says instead of what it should. */
  claims?: (right: Record<string, unknown>) => Record<string, unknown>;
  /** What the discovery document says instead of what it should. */
  document?: (right: Record<string, unknown>) => Record<string, unknown>;
  nowMs: () => number;
}>;

/** An OpenID Connect provider over plain http on this machine, whose one user agrees at once. It checks what a real one checks. */
export function startIdentityProvider(person: Person, options: ProviderOptions) {
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
    const isClient = request.headers.get('authorization') === expected;
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
      exp: Math.floor(options.nowMs() / 1_000) + 300,
      nonce: known.nonce,
      ...person,
    };
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const idToken = `${part({ alg: 'none' })}.${part(options.claims?.(right) ?? right)}.`;
    return Response.json({ access_token: 'a', token_type: 'Bearer', id_token: idToken });
  }

  return { issuer, asked, [Symbol.asyncDispose]: () => server.stop(true) };
}
