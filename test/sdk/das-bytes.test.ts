import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { startBackend } from '../fakes/backend.ts';
import { DAS_METHODS, startDas } from '../fakes/das.ts';
import { ASSETS, AUTHORITY, COLLECTION, CREATOR, OTHER_OWNER, OWNER, TREE } from '../fakes/das-assets.ts';
import { JSON_HEADERS, startGateway } from '../started/gateway.ts';

const ids = ASSETS.map(({ id }) => id);
const [compressed = '', plain = '', burnt = ''] = ids;

type Params = Readonly<Record<string, unknown>>;
/** Params of each method, by the first of its names in camel case. */
const EXAMPLES: Readonly<Record<string, Params>> = {
  getAsset: { id: compressed },
  getAssets: { ids: [compressed, plain] },
  getAssetProof: { id: compressed },
  getAssetProofs: { ids: [compressed] },
  getAssetsByOwner: { ownerAddress: OWNER },
  getAssetsByAuthority: { authorityAddress: AUTHORITY },
  getAssetsByCreator: { creatorAddress: CREATOR },
  getAssetsByGroup: { groupKey: 'collection', groupValue: COLLECTION },
  searchAssets: { negate: false },
  getAssetSignatures: { id: burnt },
  getTokenAccounts: { ownerAddress: OTHER_OWNER },
  getNftEditions: { mintAddress: plain },
  getGrouping: { groupKey: 'collection', groupValue: COLLECTION },
};
/** Every name, with params for it. */
const NAMES = DAS_METHODS.flatMap(({ names }) => {
  const first = names.find((name) => !name.includes('_')) ?? '';
  return names.map((name) => [name, EXAMPLES[first] ?? {}] as const);
});
/** The forms that params come in, each with spaces that a reprinted text would lose. */
const FORMS: readonly (readonly [string, (params: Params) => string])[] = [
  ['an object', (params) => `{ ${JSON.stringify(params).slice(1, -1)}\t}`],
  ['a list of one object', (params) => `[ ${JSON.stringify(params)}]`],
  ['a list in order', (params) => JSON.stringify(Object.values(params), undefined, 1)],
];

let das: ReturnType<typeof startDas>;
let node: ReturnType<typeof startBackend>;
let gateway: Awaited<ReturnType<typeof startGateway>>;
let key: string;
beforeAll(async () => {
  das = startDas();
  node = startBackend();
  const backends = [
    { name: 'node', url: node.url },
    { name: 'das', url: das.url, profile: 'das' },
  ];
  gateway = await startGateway({ backends });
  key = gateway.key();
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await das[Symbol.asyncDispose]();
  await node[Symbol.asyncDispose]();
});

/** The last call of a method as a backend got it, among the gateway's own questions. */
function arrivedAt({ seen }: Pick<typeof node, 'seen'>, name: string): string | undefined {
  return seen.findLast(({ method }) => method === name)?.text;
}

async function through(text: string): Promise<string> {
  return (await gateway.post(text, key)).text();
}

async function direct(text: string): Promise<string> {
  return (await fetch(das.url, { method: 'POST', headers: JSON_HEADERS, body: text })).text();
}

function call(method: string, params: string, id = '1'): string {
  return `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}`;
}

describe('every DAS method by each of its names', () => {
  test('all of them are here', () => {
    const names = NAMES.map(([name]) => name);
    for (const alias of ['getAssetBatch', 'getAssetProofBatch', 'getSignaturesForAsset', 'get_asset'])
      expect(names).toContain(alias);
    expect(new Set(names).size).toBe(31);
  });

  const cases = NAMES.flatMap(([name, params]) =>
    FORMS.map(([form, print]) => [name, form, print(params)] as const),
  );
  test.each(cases)('%s with %s: bytes in, bytes out', async (name, _form, params) => {
    const body = call(name, params, '18446744073709551615');
    const answer = await through(body);
    expect(arrivedAt(das, name)).toContain(`"params":${params}`);
    expect(JSON.parse(answer).error).toBeUndefined();
    expect(answer).toBe(await direct(body));
  });

  test('never goes to a node', () => {
    const asked = new Set(node.seen.map(({ method }) => method));
    expect(NAMES.filter(([name]) => asked.has(name))).toEqual([]);
  });
});

describe('what a reprinted JSON would lose', () => {
  test('numbers beyond 2^53, floats and escapes survive in both directions', async () => {
    const odd = `{"id" : "${compressed.slice(0, -1)}\\u0063","options":{"limit":18446744073709551615,"at":5.0e-0}}`;
    const escaped = await through(call('getAsset', odd, '"\\u0061"'));
    expect(arrivedAt(das, 'getAsset')).toContain(`"params":${odd}`);
    expect(escaped).toEndWith(',"id":"\\u0061"}');
    const texts = await Promise.all(ids.map((id) => through(call('getAsset', `{"id":"${id}"}`))));
    for (const kept of [
      '"seq":9007199254740993,',
      '"seq":18446744073709551615,',
      '"percent":5.0,',
      '"percent":1e-7,',
      '"percent":0.07500000000000001,',
    ]) {
      expect(texts.join()).toContain(kept);
    }
  });

  test('a batch of different methods is answered in order, each in its own bytes', async () => {
    const calls = NAMES.map(([name, params], i) => call(name, JSON.stringify(params), `${i}`));
    const answers = await Promise.all(calls.map(direct));
    expect(await through(`[${calls.join()}]`)).toBe(`[${answers.join()}]`);
  });
});

describe("the DAS server's own errors", () => {
  test.each<[string, string, Params, string]>([
    ['an unknown asset', 'getAsset', { id: TREE }, 'Database Error: RecordNotFound Error: Asset Not Found'],
  ])('%s: byte for byte, with HTTP 200', async (_what, method, params, words) => {
    const body = call(method, JSON.stringify(params), '"x"');
    const answer = await gateway.post(body, key);
    const text = await answer.text();
    expect([answer.status, JSON.parse(text).error.message]).toEqual([200, expect.stringContaining(words)]);
    expect(text).toBe(await direct(body));
  });
});

describe('provider extensions', () => {
  const address = JSON.stringify(OWNER);
  const extensions: readonly (readonly [string, string])[] = [
    ['getPriorityFeeEstimate', `[{"accountKeys":[${address}],"options":{"recommended":true}}]`],
    ['getProgramAccountsV2', `[${address},{"limit":10000,"paginationKey":null}]`],
    ['getTokenAccountsByOwnerV2', `[${address},{"programId":${address}},{"limit":1}]`],
    ['getTokenAccountsByMint', `[${address}]`],
    ['getTransactionsForAddress', `[${address},{"limit":1}]`],
    ['simulateBundle', '[{"encodedTransactions":[]}]'],
    ['qn_estimatePriorityFees', '{"last_n_blocks":100}'],
  ];

  test('each is answered by the backend that declares it, its params untouched, and by no other', async () => {
    await using provider = startBackend();
    await using declaring = await startGateway({
      backends: [
        { name: 'node', url: node.url },
        { name: 'provider', url: provider.url, lanes: ['assets'], methods: extensions.map(([name]) => name) },
      ],
    });
    const ownKey = declaring.key();
    for (const [name, params] of extensions) {
      expect(JSON.parse(await through(call(name, params))).error.code).toBe(-32601);
      const answer = await declaring.post(call(name, params), ownKey);
      expect(await answer.json()).toMatchObject({ result: `answer to ${name}` });
      expect(arrivedAt(provider, name)).toContain(`"params":${params}`);
    }
  });
});
