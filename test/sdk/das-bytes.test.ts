import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { startBackend } from '../fakes/backend.ts';
import { DAS_METHODS, startDas } from '../fakes/das.ts';
import { ASSETS, AUTHORITY, COLLECTION, CREATOR, OTHER_OWNER, OWNER } from '../fakes/das-assets.ts';
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
  test.each(NAMES)('%s: bytes in, bytes out', async (name, params) => {
    const spaced = `[ ${JSON.stringify(params).replace('}', '\t}')}]`; // a reprinted text would lose it
    const body = call(name, spaced, '18446744073709551615');
    const answer = await through(body);
    expect(arrivedAt(das, name)).toContain(`"params":${spaced}`);
    expect(JSON.parse(answer).error).toBeUndefined();
    expect(answer).toBe(await direct(body));
  });

  test('never goes to a node', () => {
    const asked = new Set(node.seen.map(({ method }) => method));
    expect(NAMES.filter(([name]) => asked.has(name))).toEqual([]);
  });
});

test('a batch of different methods is answered in order, each in its own bytes', async () => {
  const calls = NAMES.map(([name, params], i) => call(name, JSON.stringify(params), `${i}`));
  const answers = await Promise.all(calls.map(direct));
  expect(await through(`[${calls.join()}]`)).toBe(`[${answers.join()}]`);
  // What a reprinted JSON would lose is in them.
  for (const odd of ['"seq":9007199254740993,', '"percent":5.0,', '"percent":0.07500000000000001,'])
    expect(answers.join()).toContain(odd);
});
