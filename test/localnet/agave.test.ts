import { describe, expect, test } from 'bun:test';
import type { Json } from '../../localnet/json/value.ts';
import { debugText } from '../../localnet/protocol/debug-text.ts';
import { MEMO_PROGRAM, STAKE_PROGRAM, TOKEN_PROGRAM, VOTE_PROGRAM } from '../../localnet/protocol/address.ts';
import {
  faucetKeypair,
  identityKeypair,
  stakeKeypair,
  transferWire,
  voteKeypair,
} from '../../localnet/protocol/keypair.ts';
import {
  addressNumber,
  alice,
  base64,
  bob,
  CHECKED,
  integer,
  list,
  object,
  ownedAccount,
  RICH,
  startChain,
  text,
  UNCHECKED,
  builtWire,
  COMPUTE_BUDGET,
  SYSTEM,
  type WireInstruction,
} from './harness.ts';
import { shared } from '../started/shared.ts';

/** What clients' own suites found different from Agave 3.1 to 4.3, a row each. */

const processed = { commitment: 'processed', encoding: 'base64' };
const UNSOUND = 'Transaction failed to sanitize accounts offsets correctly';
const SIGNATURE_FAILURE = {
  accounts: null,
  err: 'SignatureFailure',
  fee: null,
  innerInstructions: null,
  loadedAccountsDataSize: 0n,
  loadedAddresses: null,
  logs: [],
  postBalances: null,
  postTokenBalances: null,
  preBalances: null,
  preTokenBalances: null,
  replacementBlockhash: null,
  returnData: null,
  unitsConsumed: 0n,
};

async function startRich() {
  const net = await startChain({ accounts: RICH });
  net.advance(10);
  const transfer = (blockhash = net.blockhash()) => transferWire(alice, bob.address, 1_000_000n, blockhash);
  const simulate = (wire: Uint8Array, config: Record<string, Json> = {}) =>
    net.valueOf('simulateTransaction', base64(wire), { ...processed, ...config });
  return { ...net, transferOf: transfer, simulate };
}

/** For what changes nothing on a chain. */
const rich = shared(await startRich());

function forged(wire: Uint8Array): Uint8Array {
  const copy = new Uint8Array(wire);
  copy[5] = (copy[5] ?? 0) ^ 1;
  return copy;
}

describe('a wrong signature', () => {
  test('fails the preflight with -32002 and the whole simulation', async () => {
    expect(await rich.preflightError(forged(rich.transferOf()))).toEqual({
      code: -32002n,
      message: 'Transaction simulation failed: Transaction did not pass signature verification',
      data: SIGNATURE_FAILURE,
    });
  });

  test('is the result of a simulation with sigVerify', async () => {
    const loadedAddresses = { readonly: [], writable: [] };
    expect(await rich.simulate(forged(rich.transferOf()), { sigVerify: true })).toEqual({
      ...SIGNATURE_FAILURE,
      loadedAddresses,
    });
    expect(await rich.simulate(forged(rich.transferOf()))).toMatchObject({ err: null });
  });

  test('is told before an unknown blockhash and before a copy', async () => {
    using net = await startRich();
    const unknown = forged(net.transferOf(addressNumber(4)));
    expect(await net.preflightError(unknown)).toMatchObject({ data: { err: 'SignatureFailure' } });
    const wire = net.transferOf();
    await net.send(wire, CHECKED);
    const copy = new Uint8Array(wire);
    copy[copy.length - 1] = (copy.at(-1) ?? 0) ^ 1;
    expect(await net.preflightError(copy)).toMatchObject({ data: { err: 'SignatureFailure' } });
  });

  test('without a preflight gets a signature that never has a status', async () => {
    using net = await startRich();
    expect(await net.statusOf(await net.send(forged(net.transferOf())))).toBeNull();
  });
});

describe('what is no transaction is -32602, with a preflight and without', () => {
  const limit = { program: COMPUTE_BUDGET, accounts: [], data: [2, 1, 0, 0, 0] };
  const budget = (...data: number[]) => ({ program: COMPUTE_BUDGET, accounts: [], data });
  const rows: readonly (readonly [string, WireInstruction[], string])[] = [
    [
      'a limit of compute units twice',
      [limit, limit],
      'Transaction contains a duplicate instruction (1) that is not allowed',
    ],
    [
      'a price of compute units cut short',
      [budget(3, 1)],
      'Error processing Instruction 0: invalid instruction data',
    ],
    [
      'an unknown budget',
      [limit, budget(9, 0, 0, 0, 0)],
      'Error processing Instruction 1: invalid instruction data',
    ],
    [
      '65 instructions',
      Array.from({ length: 65 }, () => ({ program: SYSTEM, accounts: [], data: [] })),
      UNSOUND,
    ],
  ];
  test.each(rows)('%s', async (_, instructions, words) => {
    await refusesBoth(builtWire(alice, rich.blockhash(), instructions), words);
  });

  // Places in the message of a transfer: 64 bytes of signature behind their count, then the header.
  test.each<[string, (wire: Uint8Array) => Uint8Array]>([
    [
      'two signatures for one signer',
      (wire) => Buffer.concat([Uint8Array.of(2), wire.subarray(1, 65), wire.subarray(1)]),
    ],
    ['no writable signer', (wire) => wire.with(66, 1)],
    ['more read-only keys than keys', (wire) => wire.with(67, 3)],
    ['an instruction of the payer', (wire) => wire.with(65 + 4 + 96 + 32 + 1, 0)],
    ['an instruction of a key that is not there', (wire) => wire.with(65 + 4 + 96 + 32 + 1, 3)],
    ['an account that is not there', (wire) => wire.with(65 + 4 + 96 + 32 + 3, 3)],
  ])('%s', (_, spoil) => refusesBoth(spoil(new Uint8Array(rich.transferOf())), UNSOUND));

  async function refusesBoth(wire: Uint8Array, words: string) {
    const refusal = { code: -32602n, message: `invalid transaction: ${words}` };
    expect(await rich.refusal('sendTransaction', base64(wire), CHECKED)).toEqual(refusal);
    expect(await rich.refusal('sendTransaction', base64(wire), UNCHECKED)).toEqual(refusal);
    expect(await rich.refusal('simulateTransaction', base64(wire), processed)).toEqual(refusal);
  }
});

describe('the bytes of loaded accounts', () => {
  test('are 0, and the fee null, in a preflight that fails before anything ran', async () => {
    const error = await rich.preflightError(rich.transferOf(addressNumber(4)));
    expect(error).toMatchObject({
      data: { err: 'BlockhashNotFound', fee: null, loadedAccountsDataSize: 0n },
    });
  });

  test('are 64 for each account that exists and its data, a program and its code once', async () => {
    const space = async (key: string) =>
      integer(object(await rich.valueOf('getAccountInfo', key, processed))['space']);
    // Alice and the system program; bob is not there.
    const ofTransfer = { fee: 5_000n, loadedAccountsDataSize: 64n + 64n + (await space(SYSTEM)) };
    expect(await rich.simulate(rich.transferOf())).toMatchObject({ err: null, ...ofTransfer });
    const failed = transferWire(alice, bob.address, 10n ** 15n, rich.blockhash());
    expect(await rich.preflightError(failed)).toMatchObject({ data: ofTransfer });
    const program = object(await rich.valueOf('getAccountInfo', TOKEN_PROGRAM, { encoding: 'jsonParsed' }));
    const info = object(object(object(program['data'])['parsed'])['info']);
    const code = await space(text(info['programData']));
    const call = builtWire(alice, rich.blockhash(), [{ program: TOKEN_PROGRAM, accounts: [], data: [99] }]);
    const loadedAccountsDataSize = 64n + (64n + (await space(TOKEN_PROGRAM))) + (64n + code);
    expect(await rich.simulate(call)).toMatchObject({ loadedAccountsDataSize });
  });
});

test.each([
  ['a few bytes', Buffer.from('test data'), 'KLUv/QBYSQAAdGVzdCBkYXRh'],
  ['none', Buffer.alloc(0), 'KLUv/QBYAQAA'],
  ['more than are made at once', crypto.getRandomValues(Buffer.alloc(60_000)), undefined],
  ['more than the window', Buffer.alloc(3 * 1024 * 1024, 'abc'), undefined],
])('base64+zstd of %s is a frame without the length of its content', async (_, data, frame) => {
  const key = addressNumber(710);
  using net = await startChain({ accounts: [[key, ownedAccount(MEMO_PROGRAM, new Uint8Array(data))]] });
  const found = object(await net.valueOf('getAccountInfo', key, { encoding: 'base64+zstd' }));
  const [encoded, encoding] = list(found['data']).map(text);
  const bytes = Buffer.from(encoded ?? '', 'base64');
  expect([encoding, bytes.readUInt32LE(0), bytes[4], bytes[5]]).toEqual(['base64+zstd', 0xfd2fb528, 0, 0x58]);
  expect(Buffer.from(Bun.zstdDecompressSync(bytes))).toEqual(data);
  if (frame !== undefined) expect(encoded).toBe(frame);
});

test('the rent sysvar is parsed as its one field that still counts', async () => {
  const rent = 'SysvarRent111111111111111111111111111111111';
  const found = object(await rich.valueOf('getAccountInfo', rent, { encoding: 'jsonParsed' }));
  expect(found['data']).toEqual({
    parsed: { type: 'rent', info: { lamportsPerByte: '6960' } },
    program: 'sysvar',
    space: 17n,
  });
});

test('a block has transactions with rewards as its details and its rewards were asked for', async () => {
  using net = await startRich();
  const slot = await net.result('getSlot', { commitment: 'processed' });
  await net.send(net.transferOf());
  net.advance();
  for (const [details, rewards, expected] of [
    ['full', true, []],
    ['full', false, null],
    ['accounts', true, []],
    ['accounts', false, undefined],
  ] as const)
    for (const encoding of details === 'full' ? ['json', 'jsonParsed', 'base64'] : ['json']) {
      const config = { commitment: 'confirmed', transactionDetails: details, rewards, encoding };
      const [transaction] = list(object(await net.result('getBlock', slot, config))['transactions']);
      expect<unknown>([details, rewards, encoding, object(object(transaction)['meta'])['rewards']]).toEqual([
        details,
        rewards,
        encoding,
        expected,
      ]);
    }
});

test.each<[string, bigint, Json]>([
  ['too little for rent', 1n, { InsufficientFundsForRent: { account_index: 1n } }],
  ['more than the faucet has', 18446744073709551615n, { InstructionError: [0n, { Custom: 1n }] }],
])('an airdrop of %s gives a signature, whose status tells', async (_, lamports, err) => {
  using net = await startChain();
  const signature = text(await net.result('requestAirdrop', addressNumber(9), lamports));
  expect(await net.statusOf(signature)).toMatchObject({ err });
  expect(await net.balance(addressNumber(9))).toBe(0n);
});

test('the identity and the vote account that the node names exist with its stake, and the largest accounts have them', async () => {
  using net = await startChain();
  const [identity, vote] = [identityKeypair().address, voteKeypair().address];
  expect(await net.balance(identity)).toBe(500_000_000_000n);
  const found = object(await net.valueOf('getAccountInfo', vote, { encoding: 'jsonParsed' }));
  expect(found).toMatchObject({ owner: VOTE_PROGRAM, lamports: 1_000_000_000_000_000n, space: 3_762n });
  expect(found['data']).toEqual({
    program: 'vote',
    space: 3_762n,
    parsed: {
      type: 'vote',
      info: {
        nodePubkey: identity,
        authorizedWithdrawer: vote,
        commission: 0n,
        votes: [],
        rootSlot: null,
        authorizedVoters: [{ epoch: 1041n, authorizedVoter: vote }],
        priorVoters: [],
        epochCredits: [],
        lastTimestamp: { slot: 0n, timestamp: 0n },
        inflationRewardsCollector: vote,
        inflationRewardsCommissionBps: 0n,
        blockRevenueCollector: identity,
        blockRevenueCommissionBps: 10_000n,
        pendingDelegatorRewards: '0',
        blsPubkeyCompressed: null,
      },
    },
  });
  const stakes = list(await net.result('getProgramAccounts', STAKE_PROGRAM, { encoding: 'jsonParsed' }));
  const delegation = { stake: '1000000000000', voter: vote };
  const parsed = { type: 'delegated', info: { stake: { delegation } } };
  expect(stakes).toMatchObject([{ pubkey: stakeKeypair().address, account: { data: { parsed } } }]);
  const largest = list(await net.valueOf('getLargestAccounts')).map((each) => object(each)['address']);
  expect(largest).toEqual(expect.arrayContaining([faucetKeypair().address, identity, vote]));
});

// What the crates base64 0.22 and bs58 0.5 say.
test.each([
  ['someInvalidMessage', 'base64', 'InvalidPadding'],
  ['AAAA\n', 'base64', 'InvalidByte(4, 10)'],
  ['AA AAAAA', 'base64', 'InvalidByte(2, 32)'],
  ['AA=AAAAA', 'base64', 'InvalidByte(2, 61)'],
  ['AAAA=', 'base64', 'InvalidByte(4, 61)'],
  ['AAAAA===', 'base64', 'InvalidByte(5, 61)'],
  ['AAAAAA=A', 'base64', 'InvalidByte(6, 61)'],
  ['AAAAAA%A', 'base64', 'InvalidByte(6, 37)'],
  ['AAAAA', 'base64', 'InvalidLength(5)'],
  ['AAAAAB==', 'base64', 'InvalidLastSymbol(5, 66)'],
  ['AAAAAAB=', 'base64', 'InvalidLastSymbol(6, 66)'],
  ['ü', 'base64', 'InvalidByte(0, 195)'],
  ['abc0', 'base58', "InvalidCharacter { character: '0', index: 3 }"],
  ["a'", 'base58', "InvalidCharacter { character: '\\'', index: 1 }"],
  ['a\u0001', 'base58', "InvalidCharacter { character: '\\u{1}', index: 1 }"],
  ['aü', 'base58', 'NonAsciiCharacter { index: 1 }'],
])('%j is refused as %s: %s', async (wire, encoding, fault) => {
  const refusal = { code: -32602n, message: `invalid ${encoding} encoding: ${fault}` };
  expect(await rich.refusal('sendTransaction', wire, { encoding })).toEqual(refusal);
  if (encoding === 'base64') expect(await rich.refusal('getFeeForMessage', wire)).toEqual(refusal);
});

test.each(['AQID', '', 'gA=='])(
  'a fee is refused for %j, which is no message, by the name of one',
  async (message) => {
    expect(await rich.refusal('getFeeForMessage', message)).toEqual({
      code: -32602n,
      message:
        'failed to deserialize solana_message::versions::VersionedMessage: io error: failed to fill whole buffer',
    });
  },
);

test.each<[string, string, readonly string[]]>([
  ['test "q" ü\n', 'a memo', ['Memo (len 12): "test \\"q\\" ü\\n"']],
  ['Signed by:', 'a memo of the words of the log', ['Memo (len 10): "Signed by:"']],
  ['Memo (len 2)', 'another', ['Memo (len 12): "Memo (len 2)"']],
  ['', 'an empty one', ['Memo (len 0): ""']],
])('the log of %j is what the program of clusters prints: %s', async (memo, _, lines) => {
  const logsOf = async (accounts: readonly (typeof alice.address)[]) => {
    const instruction = { program: MEMO_PROGRAM, accounts, data: [...Buffer.from(memo)] };
    const { logs } = object(await rich.simulate(builtWire(alice, rich.blockhash(), [instruction])));
    return list(logs)
      .map(String)
      .filter((line) => line.startsWith('Program log: '));
  };
  const printed = lines.map((line) => `Program log: ${line}`);
  expect(await logsOf([])).toEqual(printed);
  expect(await logsOf([alice.address])).toEqual([`Program log: Signed by ${alice.address}`, ...printed]);
});

test('text is printed as Rust prints it for debugging', () => {
  expect(debugText(`a\t'"\\\0\u200b\u00a0é🦖`)).toBe(`"a\\t'\\"\\\\\\0\\u{200b}\\u{a0}é🦖"`);
  expect(debugText(`'`, "'")).toBe(`'\\''`);
});
