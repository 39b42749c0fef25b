import { describe, expect, test } from 'bun:test';
import blocks from '../../../deploys/delivery/addresses.json' with { type: 'json' };
import { canonicalIp, isPublicAddress } from '../../../deploys/delivery/policy.ts';
import { bytesOfIp } from '../../fakes/receiver-dns.ts';

const DENIED = [...blocks.ipv4_denied, ...blocks.ipv6_denied].map(([cidr = '']) => cidr);

type Range = Readonly<{ first: bigint; last: bigint; bits: number }>;

function rangeOf(cidr: string): Range {
  const [text = '', prefix = ''] = cidr.split('/');
  const bytes = bytesOfIp(text);
  const bits = bytes.length * 8;
  const first = BigInt(`0x${Buffer.from(bytes).toString('hex')}`);
  return { first, last: first + (1n << BigInt(bits - Number(prefix))) - 1n, bits };
}

function textOf(value: bigint, bits: number): string {
  const hex = value.toString(16).padStart(bits / 4, '0');
  if (bits === 32) return Buffer.from(hex, 'hex').join('.');
  return hex.match(/.{4}/g)?.join(':') ?? '';
}

/** What the rule must say of a neighbour: decided by comparing numbers, not by the masks under test. */
function isDenied(value: bigint, bits: number): boolean {
  const within = (cidr: string) => {
    const range = rangeOf(cidr);
    return range.bits === bits && range.first <= value && value <= range.last;
  };
  if (bits === 128 && !blocks.ipv6_allowed.some(([cidr = '']) => within(cidr))) return true;
  return DENIED.some(within);
}

describe('every block of the data file', () => {
  test('ends at its edges: the addresses before and after it follow their own rules', () => {
    for (const cidr of DENIED) {
      const { first, last, bits } = rangeOf(cidr);
      const neighbours = [first - 1n, last + 1n].filter((value) => value >= 0n && value < 1n << BigInt(bits));
      for (const value of neighbours)
        expect([cidr, isPublicAddress(textOf(value, bits))]).toEqual([cidr, !isDenied(value, bits)]);
    }
  });
  test('2000::/3 is public at its edges, and nothing is beyond them', () => {
    expect(['2000::', '3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff'].map(isPublicAddress)).toEqual([true, true]);
    const outside = ['1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '4000::'];
    expect(outside.map(isPublicAddress)).toEqual([false, false]);
  });
});

/** The list as it was decided, apart from the data: a block that is lost there is missed here. */
const DECIDED =
  `0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
  192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24
  203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 168.63.129.16/32 161.26.0.0/16 166.8.0.0/14
  ::/128 ::1/128 ::/96 ::ffff:0:0/96 ::ffff:0:0:0/96 ::5efe:0:0/96 64:ff9b::/96 64:ff9b:1::/48 100::/64 100:0:0:1::/64
  5f00::/16 fc00::/7 fe80::/10 fec0::/10 ff00::/8 4000::/2 8000::/1
  2001::/23 2001::/32 2001:2::/48 2001:3::/32 2001:4:112::/48 2001:10::/28 2001:20::/28 2001:30::/28 2001:db8::/32
  2002::/16 2620:4f:8000::/48 3fff::/20`.split(/\s+/);

test('no block that was decided is public, from its first address to its last (E16)', () => {
  for (const cidr of DECIDED) {
    const { first, last, bits } = rangeOf(cidr);
    for (const value of [first, (first + last) / 2n, last])
      expect([cidr, isPublicAddress(textOf(value, bits))]).toEqual([cidr, false]);
  }
});

test.each([
  [
    false,
    '100.100.100.200 169.254.169.254 ::ffff:127.0.0.1 ::8.8.8.8 64:ff9b::8.8.8.8 2002:7f00:1:: fd00:ec2::254',
  ],
  [true, '1.1.1.1 8.8.8.8 172.32.0.1 198.41.0.44 2001:503:ba3e::2:30 2606:4700::1111 2a00:1450::1'],
])('public is %p for %s', (expected, texts) => {
  for (const text of texts.split(' ')) expect([text, isPublicAddress(text)]).toEqual([text, expected]);
});

test.each([
  ['198.41.0.44', '198.41.0.44'],
  ['2001:503:BA3E:0::2:30', '2001:503:ba3e::2:30'],
  ['::ffff:127.0.0.1', '::ffff:7f00:1'],
  ['FE80:0::A', 'fe80::a'],
])('%s has the one spelling %s', (text, canonical) => expect(canonicalIp(text)).toBe(canonical));

test('any other text is no address, and not public', () => {
  const others = ' localhost 127.1 0177.0.0.1 256.1.1.1 1.1.1.1. fe80::1%eth0 [::1] ::: 1::2::3';
  for (const text of others.split(' '))
    expect([text, canonicalIp(text), isPublicAddress(text)]).toEqual([text, undefined, false]);
});
