import { expect, test } from 'bun:test';
import { accountsFrom } from '../../../deploys/watch/decode.ts';
import { accountJson, LOADER_V3, programDataBytes } from '../../fakes/chain.ts';

const account = accountJson({ owner: LOADER_V3, data: programDataBytes(5) }, 45);
const answer = (value: unknown, slot: unknown = 9) => ({ context: { slot }, value });
const patched = (patch: object) => answer([{ ...account, ...patch }]);

test('an answer gives its slot and one entry per address, null as absent', () => {
  const accounts = accountsFrom(answer([account, null]), 2);
  expect(accounts?.contextSlot).toBe(9n);
  expect(accounts?.accounts[0]).toMatchObject({ owner: LOADER_V3, space: programDataBytes(5).length });
  expect(accounts?.accounts[0]?.data.length).toBe(45);
  expect(accounts?.accounts[1]).toBeUndefined();
});

test('a backend that does not tell the length of accounts is understood', () => {
  expect(accountsFrom(patched({ space: undefined }), 1)?.accounts[0]?.space).toBeUndefined();
});

test.each([
  ['nothing', undefined],
  ['null', null],
  ['a list alone', [account]],
  ['one account too few', answer([])],
  ['one account too many', answer([account, account])],
  ['no slot', answer([account], null)],
  ['a slot below zero', answer([account], -1)],
  ['a slot with a fraction', answer([account], 1.5)],
  ['a slot that numbers cannot hold', answer([account], 2 ** 53)],
  ['a slot as text', answer([account], '9')],
  ['an account that is a text', answer(['account'])],
  ['no owner', patched({ owner: undefined })],
  ['an owner that is no address', patched({ owner: 'abc' })],
  ['data in another encoding', patched({ data: ['AAAA', 'base58'] })],
  ['data as one text', patched({ data: 'AAAA' })],
  ['parsed data', patched({ data: { program: 'bpf-upgradeable-loader', parsed: {} } })],
  ['data that is no base64', patched({ data: ['AA*A', 'base64'] })],
  ['base64 cut in the middle', patched({ data: ['AAAAA', 'base64'] })],
])('%s is no answer', (_, result) => {
  expect(accountsFrom(result, 1)).toBeUndefined();
});
