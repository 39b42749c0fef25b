import { describe, expect, test } from 'bun:test';
import { extractApiKey } from '../../../shared/keys/carrier.ts';

const URL_PLAIN = 'http://rpc.example/';
const carried = (headers: Record<string, string>, url = URL_PLAIN) =>
  extractApiKey(new Headers(headers), url);

describe('a key is found (spec 5.2)', () => {
  test.each([
    ['in x-token', { 'x-token': 'K' }, URL_PLAIN],
    ['in Authorization: Bearer', { authorization: 'Bearer K' }, URL_PLAIN],
    ['with the scheme in any case', { authorization: 'bEARER   K ' }, URL_PLAIN],
    ['in api-key', {}, `${URL_PLAIN}?api-key=K`],
    ['among other parameters', {}, `${URL_PLAIN}?a=b&api-key=K&c`],
    ['with its name and value percent-encoded', {}, `${URL_PLAIN}?%61pi-key=%4B`],
    ['before a fragment', {}, `${URL_PLAIN}?api-key=K#api-key=L`],
    ['beside another scheme', { authorization: 'Basic abc', 'x-token': 'K' }, URL_PLAIN],
    [
      'once, though carried three times',
      { 'x-token': 'K', authorization: 'Bearer K' },
      `${URL_PLAIN}?api-key=K`,
    ],
  ])('%s', (_, headers, url) => expect(carried(headers, url)).toEqual({ kind: 'text', text: 'K' }));
});

describe('nothing is found', () => {
  test.each([
    ['in a bare request', {}, URL_PLAIN],
    ['in empty carriers', { 'x-token': '', authorization: 'Bearer ' }, `${URL_PLAIN}?api-key=`],
    ['in a parameter of another name', {}, `${URL_PLAIN}?api_key=K&xapi-key=K&API-KEY=K`],
    ['in a parameter without a value', {}, `${URL_PLAIN}?api-key`],
    ['in another scheme', { authorization: 'Basic K' }, URL_PLAIN],
  ])('%s', (_, headers, url) => expect(carried(headers, url)).toEqual({ kind: 'none' }));
});

describe('two different values are a conflict', () => {
  test.each([
    ['in two headers', { 'x-token': 'K', authorization: 'Bearer L' }, URL_PLAIN],
    ['in header and query', { 'x-token': 'K' }, `${URL_PLAIN}?api-key=L`],
    ['in the query twice', {}, `${URL_PLAIN}?api-key=K&api-key=L`],
  ])('%s', (_, headers, url) => expect(carried(headers, url)).toEqual({ kind: 'conflict' }));
});

test('a broken percent-encoding is some unknown key, not an exception', () => {
  expect(carried({}, `${URL_PLAIN}?api-key=%E0%A4%A`)).toEqual({ kind: 'text', text: '%E0%A4%A' });
});
