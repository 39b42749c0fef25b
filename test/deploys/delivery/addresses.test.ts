import { expect, test } from 'bun:test';
import { canonicalIp, isPublicAddress } from '../../../deploys/delivery/policy.ts';
import { bytesOfIp } from '../../started/receiver-dns.ts';

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
    '100.100.100.200 169.254.169.254 ::ffff:127.0.0.1 ::8.8.8.8 64:ff9b::8.8.8.8 2002:7f00:1:: fd00:ec2::254 1fff:ffff::',
  ],
  [
    true,
    '1.1.1.1 1.0.0.0 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 172.15.255.255 172.32.0.0 198.17.255.255 198.20.0.0',
  ],
  [true, '166.7.255.255 166.12.0.0 161.25.255.255 161.27.0.0 168.63.129.15 168.63.129.17 223.255.255.255'],
  [true, '2000:: 2001:200:: 2001:db7:ffff:: 2001:db9:: 2001:503:ba3e::2:30 2003:: 2a00:1450::1 3ffe:ffff::'],
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
