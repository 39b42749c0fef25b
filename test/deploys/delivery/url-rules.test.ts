import { describe, expect, test } from 'bun:test';
import {
  internetPolicy,
  ipBytesFrom,
  isPublicAddress,
  literalOf,
  readWebhookUrl,
  URL_PROBLEM_TEXTS,
  type UrlProblem,
} from '../../../deploys/delivery/policy.ts';

const POLICY = internetPolicy(['console.example.com']);
const read = (text: string) => readWebhookUrl(text, POLICY);
const problemOf = (text: string) => {
  const outcome = read(text);
  return outcome.kind === 'refused' ? outcome.problem : undefined;
};

test.each([
  ['https://hooks.example.com', 'https://hooks.example.com/'],
  ['HTTPS://Hooks.Example.COM:443/a?b=c', 'https://hooks.example.com/a?b=c'],
  ['https://hooks.example.com:8443/', 'https://hooks.example.com:8443/'],
  ['https://hooks.example.com:1024/', 'https://hooks.example.com:1024/'],
  ['https://hooks.example.com:65535/', 'https://hooks.example.com:65535/'],
  ['https://bücher.example.com/', 'https://xn--bcher-kva.example.com/'],
  ['https://198.41.0.44/', 'https://198.41.0.44/'],
  ['https://[2001:503:ba3e::2:30]/', 'https://[2001:503:ba3e::2:30]/'],
  ['https://a_b.example.com/', 'https://a_b.example.com/'],
])('%s is kept as %s', (text, href) => {
  const outcome = read(text);
  expect(outcome.kind === 'url' ? outcome.url.href : outcome).toBe(href);
});

test.each<[UrlProblem, string]>([
  ['too_long', `https://hooks.example.com/${'a'.repeat(2_048)}`],
  ['too_long', `https://hooks.example.com/${'é'.repeat(500)}`],
  ['odd_characters', 'https://hooks.example.com/\n'],
  ['odd_characters', 'https://hooks.exa\tmple.com/'],
  ['odd_characters', 'https://hooks.example.com/\r\nx-a: b'],
  ['odd_characters', 'https:\\\\hooks.example.com'],
  ['odd_characters', 'https://hooks.example.com/a\\b'],
  ['odd_characters', ' https://hooks.example.com/'],
  ['odd_characters', 'https://hooks.example.com/\u0000'],
  ['odd_characters', 'https://hooks.example.com/\u0085'],
  ['not_a_url', ''],
  ['not_a_url', 'hooks.example.com'],
  ['not_a_url', 'https://'],
  ['not_a_url', 'https://[fe80::1%25eth0]/'],
  ['not_a_url', 'https://xn--a-.example.com/'],
  ['not_a_url', 'https://hooks.example.com:65536/'],
  ['not_a_url', 'https://256.256.256.256/'],
  ['not_https', 'http://hooks.example.com/'],
  ['not_https', 'ftp://hooks.example.com/'],
  ['not_https', 'file:///etc/passwd'],
  ['has_credentials', 'https://user@hooks.example.com/'],
  ['has_credentials', 'https://:pass@hooks.example.com/'],
  ['has_credentials', 'https://good.example.com@127.0.0.1/'],
  ['has_fragment', 'https://hooks.example.com/#a'],
  ['has_fragment', 'https://hooks.example.com/#'],
  ['not_public_name', 'https://intranet/'],
  ['not_public_name', 'https://hooks.example.com./'],
  ['not_public_name', 'https://localhost/'],
  ['not_public_name', 'https://LOCALHOST./'],
  ['not_public_name', 'https://a.localhost/'],
  ['not_public_name', 'https://printer.local/'],
  ['not_public_name', 'https://metadata.google.internal/'],
  ['not_public_name', 'https://nas.lan/'],
  ['not_public_name', 'https://nas.home.arpa/'],
  ['not_public_name', 'https://a.onion/'],
  ['not_public_name', 'https://a.test/'],
  ['not_public_name', 'https://a.invalid/'],
  ['not_public_name', 'https://a.alt/'],
  ['not_public_name', 'https://console.example.com/'],
  ['port_not_allowed', 'https://hooks.example.com:0/'],
  ['port_not_allowed', 'https://hooks.example.com:22/'],
  ['port_not_allowed', 'https://hooks.example.com:25/'],
  ['port_not_allowed', 'https://hooks.example.com:465/'],
  ['port_not_allowed', 'https://hooks.example.com:993/'],
  ['port_not_allowed', 'https://hooks.example.com:1023/'],
  ['port_not_allowed', 'https://hooks.example.com:6667/'],
  ['port_not_allowed', 'https://hooks.example.com:10080/'],
])('%s: %j', (problem, text) => expect(problemOf(text)).toBe(problem));

describe('a private address is seen behind every spelling (E16)', () => {
  test.each([
    ['https://2130706433/', '127.0.0.1'],
    ['https://0x7f.1/', '127.0.0.1'],
    ['https://0x7f000001/', '127.0.0.1'],
    ['https://0177.0.0.1/', '127.0.0.1'],
    ['https://127.1/', '127.0.0.1'],
    ['https://127.0.0.1./', '127.0.0.1'],
    ['https://%31%32%37.0.0.1/', '127.0.0.1'],
    ['https://１２７.０.０.１/', '127.0.0.1'],
    ['https://127。0。0。1/', '127.0.0.1'],
    ['https://①②⑦.0.0.1/', '127.0.0.1'],
    ['https://0/', '0.0.0.0'],
    ['https://[::ffff:127.0.0.1]/', '::ffff:7f00:1'],
    ['https://[::127.0.0.1]/', '::7f00:1'],
    ['https://[0:0:0:0:0:ffff:7f00:1]/', '::ffff:7f00:1'],
    ['https://[::1]/', '::1'],
    ['https://[::]/', '::'],
  ])('%s', (text, address) => {
    const outcome = read(text);
    expect(outcome.kind).toBe('url');
    const literal = outcome.kind === 'url' ? literalOf(outcome.url) : undefined;
    expect(literal).toBe(address);
    expect(isPublicAddress(ipBytesFrom(literal ?? '') ?? new Uint8Array())).toBe(false);
  });
});

test('every problem has a sentence of its own for the customer', () => {
  const texts = Object.values(URL_PROBLEM_TEXTS);
  expect(new Set(texts).size).toBe(texts.length);
});
