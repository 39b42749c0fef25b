import { expect, test } from 'bun:test';
import {
  type AccountHead,
  accountsFrom,
  decodeProgram,
  decodeProgramData,
} from '../../../deploys/watch/decode.ts';
import {
  accountJson,
  addressOf,
  LOADER_V3,
  LOADER_V4,
  programBytes,
  programDataBytes,
  programV4Bytes,
  SYSTEM,
} from '../../fakes/chain.ts';

const authority = addressOf('authority');
const dataAddress = addressOf('data');
const V3 = { program: programBytes(dataAddress), data: programDataBytes(123, authority) };

/** The head of an account as a backend sends it: the slice, and the whole length. */
function head(owner: string, bytes: Uint8Array, slice: number): AccountHead {
  return { owner: owner as AccountHead['owner'], data: bytes.subarray(0, slice), space: bytes.length }; // a test's own address
}
const asProgram = (owner: string, bytes: Uint8Array) => decodeProgram(head(owner, bytes, 48));
const asData = (owner: string, bytes: Uint8Array) => decodeProgramData(head(owner, bytes, 45));
const decided = (status: string, more = {}) => ({ kind: 'decided', state: { status, ...more } }) as never; // of the table
const EMPTY = Buffer.alloc(0);

/** ProgramData with a byte at this place. */
function dataWith(bytes: Uint8Array, fill: number, from: number, to = from + 1) {
  const copy = Buffer.from(bytes);
  return copy.fill(fill, from, to);
}

test('a program account of loader v3 points to its ProgramData', () => {
  expect(asProgram(LOADER_V3, V3.program)).toEqual({ kind: 'program-data-at', address: dataAddress });
});

test.each([
  ['uninitialised', LOADER_V3, Buffer.from([0, 0, 0, 0]), 'missing'],
  ['a buffer', LOADER_V3, Buffer.concat([Buffer.from([1, 0, 0, 0]), Buffer.alloc(60)]), 'missing'],
  ['a ProgramData', LOADER_V3, V3.data, 'missing'],
  ['emptied', LOADER_V3, EMPTY, 'missing'],
  ['of loader v4 and emptied', LOADER_V4, EMPTY, 'missing'],
  ['of a loader of the future', addressOf('loader v9'), Buffer.from('\x7fELF'), 'other_loader'],
])('a program account that is %s makes its program %3$s (§3.1)', (_, owner, bytes, status) => {
  expect(asProgram(owner, bytes)).toEqual(decided(status));
  expect(decodeProgram(undefined)).toEqual(decided('missing'));
});

test('a loader v4 account of a status that no loader writes is malformed', () => {
  expect(asProgram(LOADER_V4, programV4Bytes(77, authority, 3)).kind).toBe('malformed');
});

test.each([
  [
    'without one, whatever bytes are left',
    dataWith(programDataBytes(123), 0xff, 13, 45),
    decided('frozen', { deploySlot: 123n }),
  ],
  ['of the last slot', programDataBytes(2n ** 64n - 1n), decided('frozen', { deploySlot: 2n ** 64n - 1n })],
  ['closed, with its tag cleared', Buffer.from([0, 0, 0, 0]), decided('missing')],
  ['that is a program account', V3.program, decided('missing')],
  [
    'with a flag that is neither 0 nor 1',
    dataWith(V3.data, 2, 12),
    expect.objectContaining({ kind: 'malformed' }) as never,
  ],
])('a ProgramData account %s', (_, bytes, expected) => {
  expect(asData(LOADER_V3, bytes)).toEqual(expected);
});

test('a ProgramData account that is absent or of another owner makes the program missing', () => {
  expect(decodeProgramData(undefined)).toEqual(decided('missing'));
  expect(asData(SYSTEM, EMPTY)).toEqual(decided('missing'));
});

test.each([
  ['a program', decodeProgram, LOADER_V3, V3.program, [0, 3, 4, 35]],
  ['a ProgramData', decodeProgramData, LOADER_V3, V3.data, [0, 12, 13, 44]],
  ['a loader v4', decodeProgram, LOADER_V4, programV4Bytes(1, authority, 1), [0, 47]],
] as const)(
  '%s account that a backend cut is malformed, never a state',
  (_, decode, owner, bytes, lengths) => {
    for (const length of lengths)
      for (const space of [undefined, bytes.length])
        expect(decode({ owner, data: bytes.subarray(0, length), space }).kind).toBe('malformed');
  },
);

const account = accountJson({ owner: LOADER_V3, data: programDataBytes(5) }, 45);
const answer = (value: unknown, slot: unknown = 9) => ({ context: { slot }, value });
const patched = (patch: object) => answer([{ ...account, ...patch }]);

test('an answer gives its slot and one entry per address, null as absent', () => {
  const accounts = accountsFrom(answer([account, null]), 2);
  expect(accounts?.contextSlot).toBe(9n);
  expect(accounts?.accounts[0]).toMatchObject({ owner: LOADER_V3, space: programDataBytes(5).length });
  expect(accounts?.accounts[0]?.data.length).toBe(45);
  expect(accounts?.accounts[1]).toBeNull();
});

test.each([
  ['nothing', undefined],
  ['one account too few', answer([])],
  ['no slot', answer([account], null)],
  ['a slot that numbers cannot hold', answer([account], 2 ** 53)],
  ['no owner', patched({ owner: undefined })],
  ['an owner that is no address', patched({ owner: 'abc' })],
  ['data in another encoding', patched({ data: ['AAAA', 'base58'] })],
  ['parsed data', patched({ data: { program: 'bpf-upgradeable-loader', parsed: {} } })],
  ['data that is no base64', patched({ data: ['AA*A', 'base64'] })],
])('%s is no answer', (_, result) => {
  expect(accountsFrom(result, 1)).toBeUndefined();
});
