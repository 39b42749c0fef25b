import type { Secret } from '../secret.ts';
import { secret, text } from './kinds.ts';
import type { Kind, Table } from './table.ts';

/** An OpenID Connect provider that users may log in through. */
export type OidcConfig = Readonly<{
  /** As the provider calls itself; with or without a slash at the end is not the same. */
  issuer: string;
  clientId: string;
  clientSecret: Secret;
  /** What the login page calls it. */
  name: string;
}>;

/** The address of a provider: TLS, or this machine. */
const issuer: Kind<string> = {
  wanted: 'an https:// address (http:// only for 127.0.0.1 and localhost)',
  example: '"https://login.example.com"',
  read: (value) =>
    typeof value === 'string' &&
    URL.canParse(value) &&
    /^(?:https:\/\/|http:\/\/(?:127\.0\.0\.1|localhost)(?::\d+)?(?:\/|$))/.test(value)
      ? value
      : undefined,
};

const REQUIRED = {
  issuer: issuer.example,
  client_id: '"sluice"',
  client_secret: '"env:SLUICE_OIDC_SECRET"',
} as const;

/** `[deploys.oidc]`, which is there as a whole or not at all. */
export function oidcFrom(table: Table): OidcConfig | undefined {
  const values = {
    issuer: table.take('issuer', issuer),
    clientId: table.take('client_id', text(REQUIRED.client_id)),
    clientSecret: table.take('client_secret', secret(REQUIRED.client_secret)),
    name: table.takeOr('name', text('"Single sign-on"'), 'Single sign-on'),
  };
  for (const [key, example] of Object.entries(REQUIRED)) {
    if (!table.has(key)) table.problem(key, undefined, 'a value beside the rest of [deploys.oidc]', example);
  }
  table.close();
  const { issuer: address, clientId, clientSecret, name } = values;
  if (address === undefined || clientId === undefined || clientSecret === undefined) return undefined;
  return { issuer: address, clientId, clientSecret, name };
}
