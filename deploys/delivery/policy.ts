import { Resolver } from 'node:dns/promises';
import { BlockList, isIPv4, isIPv6 } from 'node:net';
import type { Clock } from '../../shared/clock.ts';
import { codeOf, within } from '../health/outbound.ts';
import type { FailureCode } from '../outbox/outcome.ts';
import blocks from './addresses.json' with { type: 'json' };

/** Where webhooks may go. The product has one policy, of constants: neither configuration nor environment reaches `isPublic` or `ca`. */
export type NetworkPolicy = Readonly<{
  /** Every address of a name, as text. Rejects with an error whose `code` is one of node:dns. */
  resolve(host: string): Promise<readonly string[]>;
  /** Of an IP address in any spelling; false for anything else. */
  isPublic(address: string): boolean;
  /** Certificates to trust, in PEM; `undefined` for those that every client trusts. */
  ca: string | undefined;
  /** This service's own public names, which get no webhooks. */
  ownHosts: readonly string[];
}>;

/** The internet, and nothing else. */
export function internetPolicy(ownHosts: readonly string[]): NetworkPolicy {
  return { resolve: resolveInDns, isPublic: isPublicAddress, ca: undefined, ownHosts };
}

/** Ports from 1024 up that the Fetch standard blocks, because another protocol answers there; `node:https` does not. */
const BAD_PORTS = new Set([
  1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697,
  10080,
]);

/**
 * c-ares doubles the second try, and Bun 1.4.5 looks at its clock once a second: so a silent server is asked again
 * after 1 s and given up after 2, which leaves the 3 s of a lookup time for the half that did answer.
 */
const TRY_MS = 500;
const TRIES = 2;
const NO_ADDRESS = new Set(['ENOTFOUND', 'ENODATA']);

/**
 * The A and AAAA records, without hosts file and search list. Not `dns.lookup`: getaddrinfo has one thread per core
 * here, which it shares with files and password hashes, so two names whose servers are silent would stop those for
 * 10 s (measured on Bun 1.4.5). c-ares waits without a thread. A new resolver per question reads resolv.conf anew.
 */
async function resolveInDns(host: string): Promise<readonly string[]> {
  const resolver = new Resolver({ timeout: TRY_MS, tries: TRIES });
  const [four, six] = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
  const addresses = [four, six].flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  if (addresses.length > 0) return addresses;
  // "No such name" is an answer; trouble with one of the two questions is none.
  for (const answer of [four, six])
    if (answer.status === 'rejected' && !NO_ADDRESS.has(answer.reason?.code)) throw answer.reason;
  return [];
}

const IPV4_DENIED = listOf(blocks.ipv4_denied, 'ipv4');
const IPV6_ALLOWED = listOf(blocks.ipv6_allowed, 'ipv6');
const IPV6_DENIED = listOf(blocks.ipv6_denied, 'ipv6');

function listOf(rows: readonly (readonly string[])[], family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList();
  for (const [cidr = ''] of rows) {
    const [base = '', bits] = cidr.split('/');
    list.addSubnet(base, Number(bits), family); // throws if it is none
  }
  return list;
}

/**
 * Whether an address belongs to the public internet. `addresses.json` holds the rule: IPv4 is public unless IANA's
 * special-purpose or multicast registry, or a cloud's habit, says otherwise; IPv6 is not public unless it is global
 * unicast, and not special within that. So the ways to write IPv4 within IPv6 (mapped, compatible, NAT64, ISATAP) are
 * never public, whichever address they hold.
 */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !IPV4_DENIED.check(address, 'ipv4');
  const ip = canonicalIp(address);
  return ip !== undefined && IPV6_ALLOWED.check(ip, 'ipv6') && !IPV6_DENIED.check(ip, 'ipv6');
}

/** The one spelling of an IP address that URLs use; `undefined` for anything else, also with a zone (`fe80::1%eth0`). */
export function canonicalIp(text: string): string | undefined {
  if (isIPv4(text)) return text;
  return isIPv6(text) ? URL.parse(`http://[${text}]/`)?.hostname.slice(1, -1) : undefined;
}

const URL_CHARACTERS_MAX = 2_048;

/** The rules of a webhook's URL, as the customer reads them. */
export const URL_PROBLEM_TEXTS = {
  too_long: `The URL must not be longer than ${URL_CHARACTERS_MAX} characters`,
  odd_characters: 'The URL must not contain a space, a control character or a backslash',
  not_a_url: 'Enter a valid URL',
  not_https: 'The URL must start with https://',
  has_credentials: 'The URL must not contain a user name or password',
  has_fragment: 'The URL must not contain a #',
  not_public_name: 'The host must be a public name, such as hooks.example.com, without a trailing dot',
  port_not_allowed: 'The port must be 443, 8443, or 1024 or higher and not reserved for another protocol',
} as const;

export type UrlProblem = keyof typeof URL_PROBLEM_TEXTS;

/** Names that no public DNS answers for, by RFC 6761, 6762, 7686, 8375, 9476 or habit. */
const PRIVATE_SUFFIXES = 'localhost local internal lan home.arpa onion test invalid alt'.split(' ');
/** Parsers drop or replace these, so that the URL would differ from the text that was typed. */
// oxlint-disable-next-line no-control-regex -- control characters are what is looked for
const ODD = /[\u0000-\u0020\u007f-\u00a0\\]/;

/** A webhook's URL from the text a customer typed, or the rule it breaks. Store its `href`: the text is never parsed again. */
export function readWebhookUrl(
  text: string,
  { ownHosts }: Pick<NetworkPolicy, 'ownHosts'>,
): URL | UrlProblem {
  if (text.length > URL_CHARACTERS_MAX) return 'too_long';
  if (ODD.test(text)) return 'odd_characters';
  const url = URL.parse(text);
  return url === null ? 'not_a_url' : (urlProblemOf(url, ownHosts) ?? url);
}

/** The first rule that a parsed URL breaks. Checked before every attempt too, because rules may be newer than rows. */
export function urlProblemOf(url: URL, ownHosts: readonly string[]): UrlProblem | undefined {
  if (url.href.length > URL_CHARACTERS_MAX) return 'too_long';
  if (url.protocol !== 'https:') return 'not_https';
  if (url.username !== '' || url.password !== '') return 'has_credentials';
  if (url.href.includes('#')) return 'has_fragment';
  if (literalOf(url) === undefined && !isPublicName(url.hostname, ownHosts)) return 'not_public_name';
  const port = portOf(url);
  return port === 443 || (port >= 1_024 && !BAD_PORTS.has(port)) ? undefined : 'port_not_allowed';
}

/** The host as an IP address without brackets; `undefined` when it is a name. */
export function literalOf({ hostname }: URL): string | undefined {
  return canonicalIp(hostname.replace(/^\[(.*)\]$/, '$1'));
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

/** An address that was found public, and the only kind that is connected to. */
export type Pin = Readonly<{ address: string; family: 4 | 6 }>;

/** The addresses of a host, or why nothing can be sent there; `unresolved`: DNS did not answer. */
type ResolvedHost =
  | Readonly<{ kind: 'public'; pins: readonly [Pin, ...Pin[]] }>
  | Readonly<{ kind: 'not-public' | 'no-address' | 'unresolved'; code: FailureCode; detail: string }>;

const LOOKUP_MS = 3_000;
const PINS_MAX = 16;
/** More than the sender has in flight: only a flood of new webhooks reaches it. Each ends within `LOOKUP_MS`. */
const LOOKUPS_MAX = 1_024;

export type ResolvePublic = ReturnType<typeof createResolvePublic>;

/** Concurrent lookups of a host are shared. */
export function createResolvePublic(policy: Pick<NetworkPolicy, 'resolve' | 'isPublic'>, clock: Clock) {
  const lookups = new Map<string, Promise<readonly string[]>>();

  function lookup(host: string): Promise<readonly string[]> {
    const running = lookups.get(host);
    if (running !== undefined) return running;
    const started = policy.resolve(host).finally(() => lookups.delete(host));
    lookups.set(host, started);
    return started;
  }

  /** Looks a host up, a name or an IP address, and vets what it leads to. Never rejects; at most 3 s. */
  return async function resolvePublic(host: string, signal: AbortSignal): Promise<ResolvedHost> {
    if (canonicalIp(host) !== undefined) return checked([host], policy);
    if (lookups.size >= LOOKUPS_MAX && !lookups.has(host)) return unresolved('dns_error', 'EBUSY');
    try {
      const answers = await within(clock, LOOKUP_MS, signal, () => lookup(host));
      if (answers.kind === 'done') return checked(answers.value, policy);
    } catch (error) {
      const code = codeOf(error, 'unknown');
      if (code !== 'ETIMEOUT') return unresolved('dns_error', code);
    }
    return unresolved('dns_timeout', 'no response from DNS');
  };
}

function unresolved(code: FailureCode, detail: string): ResolvedHost {
  return { kind: 'unresolved', code, detail };
}

/** One address that is not public rejects them all: a receiver has no reason to name one, and an attacker has. */
function checked(addresses: readonly string[], { isPublic }: Pick<NetworkPolicy, 'isPublic'>): ResolvedHost {
  const shown = addresses.slice(0, PINS_MAX);
  if (!addresses.every((address) => isPublic(address)))
    return { kind: 'not-public', code: 'blocked_address', detail: shown.join(', ') };
  const [first, ...rest] = shown.map((address): Pin => ({ address, family: isIPv6(address) ? 6 : 4 }));
  if (first === undefined)
    return { kind: 'no-address', code: 'dns_error', detail: 'the name has no address' };
  return { kind: 'public', pins: [first, ...rest] };
}
