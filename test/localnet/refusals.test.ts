import { expect, test } from 'bun:test';
import { TOKEN_PROGRAM } from '../../localnet/protocol/address.ts';
import { transferWire } from '../../localnet/protocol/keypair.ts';
import {
  addressNumber,
  alice,
  mintData,
  ownedAccount,
  RICH,
  startChain,
  tokenData,
  base64,
} from './harness.ts';

const OWNER = addressNumber(1_000);
/** What stands for them in the rows: alice, nobody, a program, its accounts of 300 and 128 bytes, and what tokens are. */
const NAMES: Readonly<Record<string, string>> = {
  alice: alice.address,
  none: addressNumber(99),
  owner: OWNER,
  big: addressNumber(1),
  small: addressNumber(2),
  mint: addressNumber(10),
  token: addressNumber(11),
  foreign: addressNumber(16),
  hash: '1'.repeat(64),
  zeros: 'A'.repeat(172),
  long64: 'A'.repeat(1_648),
  long58: '1'.repeat(1_684),
  bytes: 'A'.repeat(1_644),
  transfer: base64(transferWire(alice, alice.address, 1n, addressNumber(3))),
};

/** Method, params, code and message of calls at slot 450,000,000, in epoch 1041. Agave's words. */
const ROWS = `
getAccountInfo | ["abc"] | -32602 | Invalid param: WrongSize
getAccountInfo | ["0OIl"] | -32602 | Invalid param: Invalid
getAccountInfo | [7] | -32602 | Invalid params: invalid type: integer \`7\`, expected a string.
getAccountInfo | ["{big}","base64"] | -32602 | Invalid params: invalid type: string "base64", expected struct RpcAccountInfoConfig.
getAccountInfo | ["{big}",{"encoding":"hex"}] | -32602 | Invalid params: unknown variant \`hex\`, expected one of \`binary\`, \`base64\`, \`base58\`, \`jsonParsed\`, \`base64+zstd\`.
getAccountInfo | ["{big}",{"dataSlice":{"offset":1}}] | -32602 | Invalid params: missing field \`length\`.
getAccountInfo | ["{big}",{"dataSlice":[1]}] | -32602 | Invalid params: invalid type: sequence, expected struct UiDataSliceConfig.
getAccountInfo | ["{big}",{"dataSlice":{"offset":-1,"length":1}}] | -32602 | Invalid params: invalid value: integer \`-1\`, expected usize.
getAccountInfo | ["{big}",{"minContextSlot":"x"}] | -32602 | Invalid params: invalid type: string "x", expected u64.
getAccountInfo | ["{big}"] | -32600 | Encoded binary (base 58) data should be less than 128 bytes, please use Base64 encoding.
getAccountInfo | ["{big}",{"encoding":"base58","dataSlice":{"offset":0,"length":129}}] | -32600 | Encoded binary (base 58) data should be less than 128 bytes, please use Base64 encoding.
getBalance | ["{alice}",{"commitment":"processed","minContextSlot":450000001}] | -32016 | Minimum context slot has not been reached
getMinimumBalanceForRentExemption | [10485761] | -32602 | Invalid params: invalid value: integer \`10485761\`, expected usize.
getMinimumBalanceForRentExemption | [-1] | -32602 | Invalid params: invalid value: integer \`-1\`, expected usize.
getTokenSupply | ["{alice}",{"commitment":"bogus"}] | -32602 | Invalid params: unknown variant \`bogus\`, expected one of \`processed\`, \`confirmed\`, \`finalized\`.
getTokenSupply | ["{alice}",{}] | -32602 | Invalid params: missing field \`commitment\`.
getInflationGovernor | [{}] | -32602 | Invalid params: missing field \`commitment\`.
getProgramAccounts | ["{owner}"] | -32600 | Encoded binary (base 58) data should be less than 128 bytes, please use Base64 encoding.
getProgramAccounts | ["{owner}",{"filters":[{"dataSize":1},{"dataSize":1},{"dataSize":1},{"dataSize":1},{"dataSize":1}]}] | -32602 | Too many filters provided; max 4
getProgramAccounts | ["{owner}",{"filters":[{"dataSize":"1"}]}] | -32602 | Invalid params: invalid type: string "1", expected u64.
getProgramAccounts | ["{owner}",{"filters":[{"other":1}]}] | -32602 | Invalid params: unknown variant \`other\`, expected one of \`dataSize\`, \`memcmp\`, \`tokenAccountState\`.
getProgramAccounts | ["{owner}",{"filters":[{}]}] | -32602 | Invalid params: invalid value: map, expected map with a single key.
getProgramAccounts | ["{owner}",{"filters":[{"tokenAccountState":1}]}] | -32602 | Invalid params: invalid type: map, expected enum RpcFilterType.
getProgramAccounts | ["{owner}",{"filters":[{"memcmp":{"offset":0}}]}] | -32602 | Invalid params: missing field \`bytes\`.
getProgramAccounts | ["{owner}",{"filters":[{"memcmp":{"offset":0,"bytes":"0"}}]}] | -32602 | Invalid param: Base58DecodeError
getProgramAccounts | ["{owner}",{"filters":[{"memcmp":{"offset":0,"bytes":"?","encoding":"base64"}}]}] | -32602 | Invalid param: Base64DecodeError
getProgramAccounts | ["{owner}",{"filters":[{"memcmp":{"offset":0,"bytes":"{zeros}","encoding":"base64"}}]}] | -32602 | Invalid param: DataTooLarge
getProgramAccounts | ["{owner}",{"filters":[{"memcmp":{"offset":0,"bytes":"{hash}{hash}{hash}"}}]}] | -32602 | Invalid param: DataTooLarge
getProgramAccounts | ["{owner}",{"filters":"all"}] | -32602 | Invalid params: invalid type: string "all", expected a sequence.
getTokenAccountBalance | ["{none}"] | -32602 | Invalid param: could not find account
getTokenAccountBalance | ["{mint}"] | -32602 | Invalid param: not a Token account
getTokenAccountBalance | ["{alice}"] | -32602 | Invalid param: not a Token account
getTokenSupply | ["{none}"] | -32602 | Invalid param: could not find account
getTokenSupply | ["{token}"] | -32602 | Invalid param: mint could not be unpacked
getTokenSupply | ["{alice}"] | -32602 | Invalid param: not a Token mint
getTokenLargestAccounts | ["{none}"] | -32602 | Invalid param: could not find mint
getTokenAccountsByOwner | ["{alice}",{"mint":"{none}"}] | -32602 | Invalid param: could not find mint
getTokenAccountsByOwner | ["{alice}",{"mint":"{alice}"}] | -32602 | Invalid param: Token mint could not be unpacked
getTokenAccountsByOwner | ["{alice}",{"mint":"{foreign}"}] | -32602 | Invalid param: not a Token mint
getTokenAccountsByOwner | ["{alice}",{"mint":"{token}"}] | -32602 | Invalid param: Token mint could not be unpacked
getTokenAccountsByOwner | ["{alice}",{"programId":"{alice}"}] | -32602 | Invalid param: unrecognized Token program id
getTokenAccountsByDelegate | ["{alice}",{}] | -32602 | Invalid params: invalid value: map, expected map with a single key.
getTransaction | ["{hash}",{"commitment":"processed"}] | -32602 | Method does not support commitment below \`confirmed\`
getTransaction | ["{hash}",{"encoding":"xml"}] | -32602 | Invalid params: unknown variant \`xml\`, expected one of \`binary\`, \`base64\`, \`base58\`, \`json\`, \`jsonParsed\`.
getTransaction | ["{hash}",{"maxSupportedTransactionVersion":256}] | -32602 | Invalid params: invalid value: integer \`256\`, expected u8.
getTransaction | ["0OIl"] | -32602 | Invalid param: Invalid
getSignaturesForAddress | ["{alice}",{"limit":0}] | -32602 | Invalid limit; max 1000
getSignaturesForAddress | ["{alice}",{"commitment":"processed"}] | -32602 | Method does not support commitment below \`confirmed\`
getSignaturesForAddress | ["{alice}",{"before":"{hash}"}] | -32020 | Transaction {hash} not found
getSignaturesForAddress | ["{alice}",{"before":"abc"}] | -32602 | Invalid param: WrongSize
getSignaturesForAddress | ["{alice}",{"minContextSlot":450000000}] | -32016 | Minimum context slot has not been reached
getBlock | [1,{"commitment":"processed"}] | -32602 | Method does not support commitment below \`confirmed\`
getBlockTime | [450000000] | -32004 | Block not available for slot 450000000
getBlocks | [1,500002] | -32602 | Slot range too large; max 500000
getBlocksWithLimit | [1,500001] | -32602 | Limit too large; max 500000
getVoteAccounts | [{"votePubkey":"x"}] | -32602 | Invalid param: WrongSize
getSlotLeaders | [0,5001] | -32602 | Invalid limit; max 5000
getSlotLeaders | [451296000,1] | -32602 | Invalid slot range: leader schedule for epoch 1044 is unavailable
getSlotLeaders | [450575999,2] | -32602 | Invalid slot range: leader schedule for epoch 1043 is unavailable
getSlotLeaders | [0,3] | -32602 | Invalid slot range: leader schedule for epoch 0 is unavailable
getSlotLeaders | [0] | -32602 | \`params\` should have at least 2 argument(s)
getRecentPerformanceSamples | [721] | -32602 | Invalid limit; max 720
getBlockProduction | [{"range":{"firstSlot":5,"lastSlot":4}}] | -32602 | lastSlot, 4, cannot be less than firstSlot, 5
getBlockProduction | [{"commitment":"processed","range":{"firstSlot":5}}] | -32602 | firstSlot, 5, is too small; min 448951425
getBlockProduction | [{"commitment":"processed","range":{"firstSlot":450000000,"lastSlot":450000001}}] | -32602 | lastSlot, 450000001, is too large; max 450000000
getBlockProduction | [{"range":{}}] | -32602 | Invalid params: missing field \`firstSlot\`.
getInflationReward | [["{alice}"],{"epoch":1041}] | -32004 | Block not available for slot 450144000
getInflationReward | [[],{"commitment":"processed"}] | -32602 | Method does not support commitment below \`confirmed\`
getHighestSnapshotSlot | [] | -32008 | No snapshot
getLargestAccounts | [{"filter":"all"}] | -32602 | Invalid params: unknown variant \`all\`, expected \`circulating\` or \`nonCirculating\`.
getMaxShredInsertSlot | [1] | -32602 | Invalid parameters: No parameters were expected
getHealth | {} | -32602 | Invalid parameters: No parameters were expected
getBalance | [] | -32602 | \`params\` should have at least 1 argument(s)
getBalance | ["a",{},1] | -32602 | Invalid parameters: Expected from 1 to 2 parameters.
requestAirdrop | ["{alice}",-1] | -32602 | Invalid params: invalid value: integer \`-1\`, expected u64.
sendTransaction | ["%%%",{"encoding":"base64"}] | -32602 | invalid base64 encoding: InvalidByte(0, 37)
sendTransaction | ["{long64}",{"encoding":"base64"}] | -32602 | base64 encoded solana_transaction::versioned::VersionedTransaction too large: 1648 bytes (max: encoded/raw 1644/1232)
sendTransaction | ["{long58}"] | -32602 | base58 encoded solana_transaction::versioned::VersionedTransaction too large: 1684 bytes (max: encoded/raw 1683/1232)
sendTransaction | ["{bytes}",{"encoding":"base64"}] | -32602 | decoded solana_transaction::versioned::VersionedTransaction too large: 1233 bytes (max: 1232 bytes)
simulateTransaction | ["{transfer}",{"encoding":"base64","accounts":{"encoding":"base64","addresses":["{alice}","{alice}","{alice}"]}}] | -32602 | Too many accounts provided; max 2
simulateTransaction | ["{transfer}",{"encoding":"base64","accounts":{"encoding":"base58","addresses":[]}}] | -32602 | base58 encoding not supported
simulateTransaction | ["{transfer}",{"encoding":"base64","accounts":{"encoding":"base64"}}] | -32602 | Invalid params: invalid type: null, expected a sequence.
simulateTransaction | ["{transfer}",{"encoding":"base64","sigVerify":true,"replaceRecentBlockhash":true}] | -32602 | sigVerify may not be used with replaceRecentBlockhash
sendTransaction | ["0OIl"] | -32602 | invalid base58 encoding: InvalidCharacter { character: '0', index: 0 }
sendTransaction | ["AQID",{"encoding":"base64"}] | -32602 | failed to deserialize solana_transaction::versioned::VersionedTransaction: io error: failed to fill whole buffer
sendTransaction | ["{transfer}",{"encoding":"base64","preflightCommitment":"bogus"}] | -32602 | Invalid params: unknown variant \`bogus\`, expected one of \`processed\`, \`confirmed\`, \`finalized\`.
sendTransaction | ["a",{"encoding":"json"}] | -32602 | unsupported encoding: json. Supported encodings: base58, base64
`;

test('a call that cannot be answered is refused with the code and the words of Agave', async () => {
  using net = await startChain({
    accounts: [
      ...RICH,
      [addressNumber(1), ownedAccount(OWNER, new Uint8Array(300))],
      [addressNumber(2), ownedAccount(OWNER, new Uint8Array(128))],
      [addressNumber(10), ownedAccount(TOKEN_PROGRAM, mintData(1n, 0))],
      [addressNumber(11), ownedAccount(TOKEN_PROGRAM, tokenData(addressNumber(10), alice.address, 1n))],
      [addressNumber(16), ownedAccount(OWNER, mintData(1n, 0))],
    ],
  });
  const rows = ROWS.replaceAll(/\{(\w+)\}/g, (_, name: string) => NAMES[name] ?? '')
    .trim()
    .split('\n');
  const answers: string[] = [];
  for (const row of rows) {
    const [method = '', params = ''] = row.split(' | ');
    const answer = JSON.parse(
      await net.post(`{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`),
    );
    answers.push(`${method} | ${params} | ${answer.error?.code} | ${answer.error?.message}`);
  }
  expect(answers).toEqual(rows);
  expect(net.faults).toEqual([]);
});

test.each<[string, number, string]>([
  ['getMultipleAccounts', 100, addressNumber(3)],
  ['getSignatureStatuses', 256, '1'.repeat(64)],
  ['getRecentPrioritizationFees', 128, addressNumber(3)],
])('%s takes %i inputs, and not one more', async (method, max, input) => {
  using net = await startChain();
  await net.result(method, Array<string>(max).fill(input));
  expect(await net.refusal(method, Array<string>(max + 1).fill(input))).toEqual({
    code: -32602n,
    message: `Too many inputs provided; max ${max}`,
  });
});
