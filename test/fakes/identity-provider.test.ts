import { createHash } from 'node:crypto';
import { expect, test } from 'bun:test';
import { startIdentityProvider } from './identity-provider.ts';

const client = { clientId: 'c', clientSecret: 's', nowMs: () => 0 };
const REDIRECT = 'https://console.example.com/back';
const VERIFIER = 'the verifier of this login';

async function codeFrom(issuer: string): Promise<string> {
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: 'c',
    redirect_uri: REDIRECT,
    scope: 'openid email',
    state: 'x',
    nonce: 'n',
    code_challenge: createHash('sha256').update(VERIFIER).digest('base64url'),
    code_challenge_method: 'S256',
  });
  const answer = await fetch(`${issuer}/authorize?${query}`, { redirect: 'manual' });
  const back = new URL(answer.headers.get('location') ?? '');
  expect([`${back.origin}${back.pathname}`, back.searchParams.get('state')]).toEqual([REDIRECT, 'x']);
  return back.searchParams.get('code') ?? '';
}

async function exchange(issuer: string, more: Record<string, string>, secret = 's'): Promise<Response> {
  const fields = {
    grant_type: 'authorization_code',
    redirect_uri: REDIRECT,
    code_verifier: VERIFIER,
    ...more,
  };
  const authorization = `Basic ${Buffer.from(`c:${secret}`).toString('base64')}`;
  return fetch(`${issuer}/token`, {
    method: 'POST',
    headers: { authorization },
    body: new URLSearchParams(fields),
  });
}

test('gives an ID token for a code, once, to its client with the right verifier alone', async () => {
  await using provider = await startIdentityProvider({ sub: '7' }, client);
  const { issuer } = provider;
  expect(await (await fetch(`${issuer}/.well-known/openid-configuration`)).json()).toMatchObject({ issuer });
  expect((await exchange(issuer, { code: await codeFrom(issuer), code_verifier: 'x' })).status).toBe(400);
  expect((await exchange(issuer, { code: await codeFrom(issuer), redirect_uri: 'x' })).status).toBe(400);
  expect((await exchange(issuer, { code: await codeFrom(issuer) }, 'wrong')).status).toBe(400);
  const code = await codeFrom(issuer);
  const answer = await exchange(issuer, { code });
  expect(await answer.json()).toMatchObject({
    id_token: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]{342}$/),
  });
  expect((await exchange(issuer, { code })).status).toBe(400);
});
