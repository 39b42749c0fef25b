import { describe, expect, test } from 'bun:test';
import { createHistory } from './history.ts';
import { startHotNode } from './hot-node.ts';
import { startOldFaithful } from './old-faithful.ts';
import { startSuperbank } from './superbank.ts';

const history = createHistory({ seed: 7, slots: 90, epochSlots: 20, addresses: ['a', 'b'] });
const rows = history.transactions.filter(({ addresses }) => addresses.includes('a'));
const skipped = Array.from({ length: 90 }, (_, i) => i + 1).filter((slot) => !history.slots.includes(slot));

function post(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers,
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
}

/** The result, or the error's code. */
async function ask(url: string, method: string, params: unknown[], headers = {}): Promise<unknown> {
  const response = await post(url, { jsonrpc: '2.0', id: 1, method, params }, headers);
  const { result, error }: { result?: unknown; error?: { code: number } } = JSON.parse(await response.text());
  return error === undefined ? result : error.code;
}

const at = (i: number) => rows.at(i)?.signature;
const signatures = (list: readonly { signature: string }[]) => list.map(({ signature }) => ({ signature }));

test('the scripted Agave node refuses what it has not, and leaves its BigTable out when a header says so', async () => {
  const held = { floor: 50, top: 90 };
  await using node = startHotNode({ history, held, bigtable: undefined, strictCursors: true });
  const askNode = (method: string, params: unknown[], headers = {}) => ask(node.url, method, params, headers);
  expect(await askNode('getBlock', [49])).toBe(-32001);
  expect(await askNode('getBlock', [91])).toBe(-32004);
  expect(await askNode('getBlock', [skipped.find((slot) => slot > 50)])).toBe(-32007);
  expect(await askNode('getBlocks', [0, 500_001])).toBe(-32602);
  expect(await askNode('getFirstAvailableBlock', [])).toBe(50);
  expect(await askNode('getSignatureStatuses', [[at(0), at(-1)]])).toMatchObject({
    value: [{ slot: rows[0]?.slot }, null],
  });
  expect(await askNode('getSignaturesForAddress', ['a', { limit: 1_001 }])).toBe(-32602);
  expect(await askNode('getSignaturesForAddress', ['a', { before: at(-1) }])).toBe(-32020);
  node.state.strictCursors = false;
  expect(await askNode('getSignaturesForAddress', ['a', { before: at(-1) }])).toEqual([]);
  expect(await askNode('getTransaction', [at(-1)])).toBeNull();
  node.state.bigtable = { floor: 0, top: 90 };
  expect(await askNode('getTransaction', [at(-1)])).toMatchObject({ slot: rows.at(-1)?.slot });
  expect(await askNode('getTransaction', [at(-1)], { 'x-bigtable': 'disabled' })).toBeNull();
});

describe('the scripted Old Faithful', () => {
  const start = () => startOldFaithful({ history, epochs: [0, 2], addressIndex: true });
  const old = rows.filter(({ slot }) => slot < 60);

  test('has whole epochs only, takes no batch and no body above 1 KB, and compresses on request', async () => {
    await using archive = start();
    expect((await post(archive.url, '[{"id":1}]')).status).toBe(400);
    expect((await post(archive.url, { id: 1, params: ['x'.repeat(1_024)] })).status).toBe(413);
    expect(await ask(archive.url, 'getBlock', [60])).toBe(-32004);
    expect(await ask(archive.url, 'getBlockTime', [skipped[0]])).toBe(-32009);
    expect(await ask(archive.url, 'getTransaction', [at(0)])).toBeNull();
    expect(await ask(archive.url, 'getTransaction', [at(-1)])).toHaveProperty('position');
    expect(await ask(archive.url, 'getSlot', [])).toBe(history.slots.findLast((slot) => slot < 60));
    expect(await ask(archive.url, 'getBalance', ['a'])).toBe(-32601);
    const call = { jsonrpc: '2.0', id: 1, method: 'getVersion', params: [] };
    const response = await post(archive.url, call, { 'accept-encoding': 'gzip' });
    expect(response.headers.get('content-encoding')).toBe('gzip');
    expect(await response.json()).toHaveProperty('result.faithful');
  });

  test("gives pages in an order of epochs that is not the chain's, with the row of `until`", async () => {
    await using archive = start();
    const page = await ask(archive.url, 'getSignaturesForAddress', ['a']);
    const list: { signature: string; slot: number }[] = Array.isArray(page) ? page : [];
    expect(list.toSorted((a, b) => b.slot - a.slot)).toMatchObject(signatures(old));
    expect(list).not.toMatchObject(signatures(old));
    const two = ['a', { before: old.at(-4)?.signature, until: old.at(-2)?.signature }];
    expect(await ask(archive.url, 'getSignaturesForAddress', two)).toHaveLength(2);
    expect(await ask(archive.url, 'getSignaturesForAddress', ['a', { before: at(0) }])).toEqual([]);
    archive.state.addressIndex = false;
    expect(await ask(archive.url, 'getSignaturesForAddress', ['a'])).toBe(-32603);
  });
});

describe('the scripted Superbank', () => {
  const start = () =>
    startSuperbank({ history, held: { floor: 0, top: 70 }, timesOut: false, emitHttpErrors: false });

  test('refuses what it does not know or have, pages by slots, and names its sources', async () => {
    await using archive = start();
    expect(await ask(archive.url, 'getBlock', [1, { foo: 1 }])).toBe(-32602);
    expect(await ask(archive.url, 'getBlockTime', [71])).toBe(-32009);
    expect(await ask(archive.url, 'getBlock', [skipped[0]])).toBe(-32009);
    const between = rows.filter(({ slot }) => slot < 60 && slot > 20);
    const page = await ask(archive.url, 'getSignaturesForAddress', ['a', { beforeSlot: 60, untilSlot: 20 }]);
    expect(page).toMatchObject(signatures(between));
    const response = await post(archive.url, { id: 1, method: 'getSlot' });
    expect(response.headers.get('x-superbank-sources')).toBe('clickhouse');
  });

  test('answers a batch, and a notification in it under id null', async () => {
    await using archive = start();
    const response = await post(archive.url, [{ id: 5, method: 'getSlot' }, { method: 'getSlot' }]);
    expect(await response.json()).toMatchObject([{ id: 5 }, { id: null }]);
    const many = Array.from({ length: 65 }, () => ({ id: 1, method: 'getSlot' }));
    expect(await (await post(archive.url, many)).json()).toMatchObject({ error: { code: -32600 } });
  });

  test('does not serve what a front keeps from it, and gives its own errors with 200, or 503 if configured so', async () => {
    await using archive = start();
    archive.refuses('getBlocksWithLimit');
    expect(await ask(archive.url, 'getBlocksWithLimit', [0, 1])).toBe(-32601);
    expect(await ask(archive.url, 'getBlocks', [0, 1])).toEqual([1]);
    archive.state.timesOut = true;
    expect(await ask(archive.url, 'getSlot', [])).toBe(-32000);
    archive.state.emitHttpErrors = true;
    expect((await post(archive.url, { id: 1, method: 'getSlot' })).status).toBe(503);
  });
});
