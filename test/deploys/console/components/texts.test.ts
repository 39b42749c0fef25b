import { describe, expect, test } from 'bun:test';
import {
  bytesText,
  countText,
  distanceText,
  latencyText,
  shareText,
  spanText,
  utcText,
} from '../../../../deploys/console/components/format.tsx';
import { themeOf } from '../../../../deploys/console/layout.tsx';
import { themeCookie } from '../../../../deploys/console/pages/login/login.tsx';
import { flashOf, redirect } from '../../../../deploys/console/paths.ts';

describe('instants', () => {
  test('are written in UTC', () =>
    expect(utcText(Date.UTC(2026, 10, 21, 22, 5, 9))).toBe('2026-11-21 22:05:09'));
  test.each([
    [-5, '0 s'],
    [60_000, '1 min'],
    [3_599_999, '59 min'],
    [2 * 86_400_000 - 1, '47 h'],
    [2 * 86_400_000, '2 d'],
  ])('a span of %i ms is %s', (ms, text) => expect(spanText(ms)).toBe(text));
  test.each([
    [1_000, 500, 'just now'],
    [0, 240_000, '4 min ago'],
    [240_000, 0, 'in 4 min'],
  ])('%i seen at %i is %s', (atMs, nowMs, text) => expect(distanceText(atMs, nowMs)).toBe(text));
});

describe('numbers', () => {
  test.each([
    [countText, 1_234_567, '1,234,567'],
    [shareText, 0, '0%'],
    [shareText, 0.000_1, '<0.1%'],
    [shareText, 0.004, '0.4%'],
    [shareText, 0.999, '>99%'],
    [shareText, 1, '100%'],
    [latencyText, 0.42, '0.4 ms'],
    [latencyText, 38.4, '38 ms'],
    [latencyText, 1_250, '1.25 s'],
    [bytesText, 0, '0 B'],
    [bytesText, 1_400_000, '1.4 MB'],
    [bytesText, 45_000_000_000, '45 GB'],
  ])('%p: %f is %s', (textOf, value, text) => expect(textOf(value)).toBe(text));
});

test('a message is looked up by its code and nothing else', () => {
  expect(flashOf('saved')).toBe('Saved.');
  expect(['<b>', 'toString', '__proto__', '', null].map(flashOf)).toEqual(Array(5).fill(undefined));
});

test('a change leads to a page of the console, with its message', () => {
  const to = (...args: Parameters<typeof redirect>) => redirect(...args).headers.get('location');
  expect(to('/a?b=c#d', 'saved')).toBe('/a?b=c&done=saved#d');
  expect(to('/a')).toBe('/a');
  expect(to('//evil.example.com')).toBe('/');
  expect(to('https://evil.example.com', 'saved')).toBe('/?done=saved');
});

test.each(['/a\u2028', '/é', '/a b', '/\u{1f600}', '/a\u007f', '/a\r\nset-cookie: x=1'])(
  'a path that no header carries as it is, %j, sends to the first page',
  (path) => expect(redirect(path).headers.get('location')).toBe('/'),
);

describe('the colours', () => {
  const chosen = (cookie: string) => themeOf(new Request('https://x.example.com', { headers: { cookie } }));
  test.each([
    ['theme=dark', 'dark'],
    ['a=b; theme=light; c=d', 'light'],
    ['theme=pink', undefined],
    ['mytheme=dark', undefined],
    ['', undefined],
  ] as const)('of the cookie %p are %p', (cookie, theme) => expect(chosen(cookie)).toBe(theme));

  test('are kept for a year, or given back to the system', () => {
    expect(themeCookie('dark', true)).toBe(
      'theme=dark; Path=/; Max-Age=31536000; SameSite=Lax; HttpOnly; Secure',
    );
    expect(themeCookie('x; Domain=evil', false)).toBe('theme=; Path=/; Max-Age=0; SameSite=Lax; HttpOnly');
  });
});
