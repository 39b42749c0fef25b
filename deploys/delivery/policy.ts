import { Resolver } from 'node:dns/promises';
import { type IpBytes, isPublicAddress } from './addresses.ts';
import type { UrlRules } from './url-rules.ts';

/**
 * Where webhooks may go. There is one for the product, and it is made of constants: neither configuration nor
 * environment reaches `isPublic` or `ca`.
 */
export type NetworkPolicy = UrlRules &
  Readonly<{
    /** Every address of a name, as text. Rejects with an error whose `code` is one of node:dns. */
    resolve(host: string): Promise<readonly string[]>;
    isPublic(address: IpBytes): boolean;
    /** Certificates to trust, in PEM; `undefined` for those that every client trusts. */
    ca: string | undefined;
  }>;

/** The internet, and nothing else. `ownHosts` are the service's own public names. */
export function internetPolicy(ownHosts: readonly string[]): NetworkPolicy {
  return {
    resolve: resolveInDns,
    isPublic: isPublicAddress,
    ca: undefined,
    allowedPorts: isAllowedPort,
    ownHosts,
  };
}

/**
 * Ports from 1024 up that the Fetch standard calls bad: an answer to a POST from one of them could be another
 * protocol's. `node:https` has no such list.
 */
const BAD_PORTS = new Set([
  1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697,
  10080,
]);

function isAllowedPort(port: number): boolean {
  if (port === 443 || port === 8443) return true;
  return port >= 1_024 && port <= 65_535 && !BAD_PORTS.has(port);
}

/**
 * c-ares doubles the second try, and Bun 1.4.5 looks at its clock once a second: so a silent server is asked again
 * after 1 s and given up after 2, which leaves the 3 s of a lookup time for the half that did answer.
 */
const TRY_MS = 500;
const TRIES = 2;

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
  for (const answer of [four, six]) {
    if (
      answer.status === 'rejected' &&
      answer.reason?.code !== 'ENOTFOUND' &&
      answer.reason?.code !== 'ENODATA'
    )
      throw answer.reason;
  }
  return [];
}
