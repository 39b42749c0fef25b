import { isIPv4, isIPv6 } from 'node:net';
import blocks from './addresses.json' with { type: 'json' };

/** An IP address: 4 bytes or 16. */
export type IpBytes = Uint8Array;

type Block = Readonly<{ base: IpBytes; bits: number }>;

const IPV4_DENIED = blocks.ipv4_denied.map(blockFrom);
const IPV6_ALLOWED = blocks.ipv6_allowed.map(blockFrom);
const IPV6_DENIED = blocks.ipv6_denied.map(blockFrom);

/**
 * Whether an address belongs to the public internet. `addresses.json` holds the rule: IPv4 is public unless IANA's
 * special-purpose or multicast registry, or a cloud's habit, says otherwise; IPv6 is not public unless it is global
 * unicast, and not special within that. So the ways to write IPv4 within IPv6 (mapped, compatible, NAT64, ISATAP) are
 * never public, whichever address they hold.
 */
export function isPublicAddress(address: IpBytes): boolean {
  if (address.length === 4) return !isIn(IPV4_DENIED, address);
  return address.length === 16 && isIn(IPV6_ALLOWED, address) && !isIn(IPV6_DENIED, address);
}

/** The bytes of an address in text; `undefined` for anything else, a zone (`fe80::1%eth0`) included. */
export function ipBytesFrom(text: string): IpBytes | undefined {
  if (isIPv4(text)) return Uint8Array.from(text.split('.').map(Number));
  if (!isIPv6(text) || text.includes('%')) return undefined;
  const [head = '', tail] = text.split('::');
  const front = groupsFrom(head);
  const back = groupsFrom(tail ?? '');
  const bytes = new Uint8Array(16);
  bytes.set(front);
  bytes.set(back, 16 - back.length);
  return bytes;
}

/** Whether two texts name the same address; IPv6 has several spellings of each. */
export function isSameAddress(one: string, other: string): boolean {
  const [a, b] = [ipBytesFrom(one), ipBytesFrom(other)];
  return a !== undefined && b !== undefined && Buffer.compare(a, b) === 0;
}

/** Bytes of `a:b:c`, whose last part may be dotted. */
function groupsFrom(text: string): number[] {
  if (text === '') return [];
  return text.split(':').flatMap((group) => {
    if (group.includes('.')) return group.split('.').map(Number);
    const value = Number.parseInt(group, 16);
    return [value >> 8, value & 0xff];
  });
}

function blockFrom([cidr = '']: readonly string[]): Block {
  const [text = '', bits] = cidr.split('/');
  const base = ipBytesFrom(text);
  if (base === undefined) throw new Error(`addresses.json holds no address block: ${cidr}`);
  return { base, bits: Number(bits) };
}

function isIn(list: readonly Block[], address: IpBytes): boolean {
  return list.some(({ base, bits }) =>
    base.every((byte, i) => {
      const free = 8 - Math.min(8, Math.max(0, bits - 8 * i));
      return byte >> free === (address[i] ?? 0) >> free;
    }),
  );
}
