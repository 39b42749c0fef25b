import { describe, expect, test } from 'bun:test';
import {
  type AccountHead,
  accountsFrom,
  decodeProgram,
  decodeProgramData,
} from '../../../deploys/watch/decode.ts';
import {
  accountJson,
  addressOf,
  LOADER_V2,
  LOADER_V3,
  LOADER_V4,
  programBytes,
  programDataBytes,
  programV4Bytes,
  SYSTEM,
} from '../../fakes/chain.ts';

const authority = addressOf('authority');
const dataAddress = addressOf('data');

/** The head of an account as a backend sends it: the slice, and the whole length. */
function head(owner: string, bytes: Uint8Array, slice: number): AccountHead {
  return { owner: owner as AccountHead['owner'], data: bytes.subarray(0, slice), space: bytes.length }; // a test's own address
}
const asProgram = (owner: string, bytes: Uint8Array) => decodeProgram(head(owner, bytes, 48));
const asData = (owner: string, bytes: Uint8Array) => decodeProgramData(head(owner, bytes, 45));
const decided = (status: string) => ({ kind: 'decided', state: { status } });

describe('a program account (spec 3.1)', () => {
  test('that does not exist is missing', () => {
    expect(decodeProgram(undefined)).toEqual(decided('missing') as never);
  });

  test('of loader v3 points to its ProgramData', () => {
    expect(asProgram(LOADER_V3, programBytes(dataAddress))).toEqual({
      kind: 'program-data-at',
      address: dataAddress,
    });
  });

  test.each([
    ['loader v1', 'BPFLoader1111111111111111111111111111111111'],
    ['loader v2', LOADER_V2],
    ['the native loader', 'NativeLoader1111111111111111111111111111111'],
    ['a loader of the future', addressOf('loader v9')],
  ])('of %s is other_loader, whatever its bytes', (_, owner) => {
    expect(asProgram(owner, Buffer.from('\x7fELF'))).toEqual(decided('other_loader') as never);
    expect(asProgram(owner, Buffer.alloc(0))).toEqual(decided('other_loader') as never);
  });

  test('that is only a balance, left at a closed address, is missing', () => {
    expect(asProgram(SYSTEM, Buffer.alloc(0))).toEqual(decided('missing') as never);
  });

  test.each([
    ['uninitialised', Buffer.from([0, 0, 0, 0])],
    ['a buffer', Buffer.concat([Buffer.from([1, 0, 0, 0]), Buffer.alloc(60)])],
    ['a ProgramData', programDataBytes(5, authority)],
    ['emptied', Buffer.alloc(0)],
  ])('of loader v3 that is %s is missing', (_, bytes) => {
    expect(asProgram(LOADER_V3, bytes)).toEqual(decided('missing') as never);
  });
});

describe('a loader v4 account', () => {
  test.each([
    ['retracted', 0],
    ['deployed', 1],
  ])('that is %s is upgradeable by its authority', (_, status) => {
    expect(asProgram(LOADER_V4, programV4Bytes(77, authority, status))).toEqual({
      kind: 'decided',
      state: { status: 'upgradeable', deploySlot: 77n, upgradeAuthority: authority },
    });
  });

  test('that is finalized is frozen, and its next version is nobody’s authority', () => {
    expect(asProgram(LOADER_V4, programV4Bytes(77, authority, 2))).toEqual({
      kind: 'decided',
      state: { status: 'frozen', deploySlot: 77n },
    });
  });

  test('with a status no loader writes is malformed', () => {
    expect(asProgram(LOADER_V4, programV4Bytes(77, authority, 3)).kind).toBe('malformed');
  });

  test('that was emptied is missing', () => {
    expect(asProgram(LOADER_V4, Buffer.alloc(0))).toEqual(decided('missing') as never);
  });
});

describe('a ProgramData account', () => {
  test('with an authority is upgradeable', () => {
    expect(asData(LOADER_V3, programDataBytes(123, authority))).toEqual({
      status: 'upgradeable',
      deploySlot: 123n,
      upgradeAuthority: authority,
    });
  });

  test('without one is frozen, and bytes left behind the flag are not read', () => {
    const bytes = Buffer.from(programDataBytes(123));
    bytes.fill(0xff, 13, 45);
    expect(asData(LOADER_V3, bytes)).toEqual({ status: 'frozen', deploySlot: 123n });
  });

  test('keeps every bit of its 64-bit slot', () => {
    const slot = 2n ** 64n - 1n;
    expect(asData(LOADER_V3, programDataBytes(slot))).toEqual({ status: 'frozen', deploySlot: slot });
  });

  test.each([
    ['absent', undefined],
    ['of another owner', head(SYSTEM, Buffer.alloc(0), 45)],
    ['closed, with its tag cleared', head(LOADER_V3, Buffer.from([0, 0, 0, 0]), 45)],
    ['a program account', head(LOADER_V3, programBytes(dataAddress), 45)],
  ])('that is %s makes the program missing', (_, account) => {
    expect(decodeProgramData(account)).toEqual({ status: 'missing' });
  });

  test('with an authority flag that is neither 0 nor 1 is malformed', () => {
    const bytes = Buffer.from(programDataBytes(123, authority));
    bytes[12] = 2;
    expect(asData(LOADER_V3, bytes)).toMatchObject({ kind: 'malformed' });
  });
});

describe('bytes that a backend cut are malformed, never a state of the program', () => {
  const cut = (bytes: Uint8Array, owner: AccountHead['owner'], length: number, space?: number) => ({
    owner,
    data: bytes.subarray(0, length),
    space,
  });
  const program = programBytes(dataAddress);
  const data = programDataBytes(123, authority);

  test.each([0, 3, 4, 35])('a program account of %i bytes', (length) => {
    expect(decodeProgram(cut(program, LOADER_V3, length)).kind).toBe('malformed');
    expect(decodeProgram(cut(program, LOADER_V3, length, 36)).kind).toBe('malformed');
  });

  test.each([0, 12, 13, 44])('a ProgramData account of %i bytes', (length) => {
    expect(decodeProgramData(cut(data, LOADER_V3, length))).toMatchObject({ kind: 'malformed' });
    expect(decodeProgramData(cut(data, LOADER_V3, length, data.length))).toMatchObject({ kind: 'malformed' });
  });

  test.each([0, 47])('a loader v4 account of %i bytes', (length) => {
    const bytes = programV4Bytes(1, authority, 1);
    expect(decodeProgram(cut(bytes, LOADER_V4, length)).kind).toBe('malformed');
    expect(decodeProgram(cut(bytes, LOADER_V4, length, bytes.length)).kind).toBe('malformed');
  });

  test('a backend that ignores the slice and sends all is understood', () => {
    expect(decodeProgramData(cut(data, LOADER_V3, data.length, data.length))).toMatchObject({
      deploySlot: 123n,
    });
  });
});

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
