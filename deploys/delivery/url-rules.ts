import { ipBytesFrom } from './addresses.ts';

/** Which rule a webhook's URL breaks. */
export type UrlProblem =
  | 'too_long'
  | 'odd_characters'
  | 'not_a_url'
  | 'not_https'
  | 'has_credentials'
  | 'has_fragment'
  | 'not_public_name'
  | 'port_not_allowed';

export type UrlRead = Readonly<{ kind: 'url'; url: URL } | { kind: 'refused'; problem: UrlProblem }>;

/** What the rules need to know: the ports, and this service's own public names, which get no webhooks. */
export type UrlRules = Readonly<{ allowedPorts(port: number): boolean; ownHosts: readonly string[] }>;

const URL_CHARACTERS_MAX = 2_048;
/** Names that no public DNS answers for, by RFC 6761, 6762, 7686, 8375, 9476 or habit. */
const PRIVATE_SUFFIXES = 'localhost local internal lan home.arpa onion test invalid alt'.split(' ');
/** Parsers drop or turn these, so that the text that was typed and the URL that is used would differ. */
// oxlint-disable-next-line no-control-regex -- control characters are what is looked for
const ODD = /[\u0000-\u0020\u007f-\u00a0\\]/;

/**
 * A webhook's URL from the text a customer typed. Keep the `url`, store its `href`, and never parse the text again.
 * Says nothing about where the name leads: that is asked before every attempt.
 */
export function readWebhookUrl(text: string, rules: UrlRules): UrlRead {
  if (text.length > URL_CHARACTERS_MAX) return { kind: 'refused', problem: 'too_long' };
  if (ODD.test(text)) return { kind: 'refused', problem: 'odd_characters' };
  const url = URL.parse(text);
  if (url === null) return { kind: 'refused', problem: 'not_a_url' };
  const problem = urlProblemOf(url, rules);
  return problem === undefined ? { kind: 'url', url } : { kind: 'refused', problem };
}

/** The first rule that a parsed URL breaks. Run before every attempt too: rules may be younger than rows. */
export function urlProblemOf(url: URL, rules: UrlRules): UrlProblem | undefined {
  if (url.href.length > URL_CHARACTERS_MAX) return 'too_long';
  if (url.protocol !== 'https:') return 'not_https';
  if (url.username !== '' || url.password !== '') return 'has_credentials';
  if (url.href.includes('#')) return 'has_fragment';
  if (literalOf(url) === undefined && !isPublicName(url.hostname, rules.ownHosts)) return 'not_public_name';
  return rules.allowedPorts(portOf(url)) ? undefined : 'port_not_allowed';
}

/** The host as an IP address without brackets; `undefined` when it is a name. */
export function literalOf({ hostname }: URL): string | undefined {
  const bare = hostname.replace(/^\[(.*)\]$/, '$1');
  return ipBytesFrom(bare) === undefined ? undefined : bare;
}

export function portOf({ port }: URL): number {
  return port === '' ? 443 : Number(port);
}

/** One spelling per name: at least one dot, none at the end. */
function isPublicName(name: string, ownHosts: readonly string[]): boolean {
  if (!name.includes('.') || name.endsWith('.') || name.startsWith('.')) return false;
  if (PRIVATE_SUFFIXES.some((suffix) => name === suffix || name.endsWith(`.${suffix}`))) return false;
  return !ownHosts.includes(name);
}

/** What the customer is told. */
export const URL_PROBLEM_TEXTS: Readonly<Record<UrlProblem, string>> = {
  too_long: `The URL is longer than ${URL_CHARACTERS_MAX} characters`,
  odd_characters: 'The URL holds a space, a control character or a backslash',
  not_a_url: 'The URL cannot be read',
  not_https: 'The URL must begin with https://',
  has_credentials: 'The URL must not hold a user name or password',
  has_fragment: 'The URL must not hold a #',
  not_public_name: 'The host must be a public name, such as hooks.example.com, without a dot at the end',
  port_not_allowed: 'The port must be 443, 8443 or from 1024 up, and none that another protocol uses',
};
