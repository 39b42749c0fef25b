import { expect, test } from 'bun:test';
import { parseJson } from '../../localnet/json/value.ts';
import { recordedExchanges } from '../agave/exchanges.ts';
import { answerShape } from '../agave/shape.ts';
import { addressOf, startChain } from './chain.ts';
import { createHistory } from './history.ts';
import { startHotNode } from './hot-node.ts';
import { startLiveNode } from './live-node.ts';

const recorded = recordedExchanges();
const ADDRESS = addressOf('an address');

async function shapeOfAnswer(url: string, method: string, params: string): Promise<string> {
  const body = `{"jsonrpc":"2.0","id":"9","method":"${method}","params":${params}}`;
  const response = await fetch(url, { method: 'POST', body });
  return answerShape(parseJson(await response.text()));
}

const shapeOfRecorded = (name: string) => answerShape(parseJson(recorded.get(name)?.answer ?? ''));

/** What a fake answers, by the recorded question that it must answer like. */
type Rows = readonly (readonly [name: string, method: string, params: string])[];

async function expectShapes(url: string, rows: Rows): Promise<void> {
  for (const [name, method, params] of rows)
    expect([name, await shapeOfAnswer(url, method, params)]).toEqual([name, shapeOfRecorded(name)]);
}

test('a live node answers in the shape of a recorded Agave', async () => {
  await using node = startLiveNode({ genesis: ADDRESS });
  await expectShapes(node.url, [
    ['getSlot 1', 'getSlot', '[]'],
    ['getSlot 6', 'getSlot', '[{"minContextSlot":9007199254740993}]'],
    ['getHealth 1', 'getHealth', '[]'],
    ['getGenesisHash 1', 'getGenesisHash', '[]'],
    ['getFirstAvailableBlock 1', 'getFirstAvailableBlock', '[]'],
    ['getAccountInfo 2', 'getAccountInfo', `["${ADDRESS}"]`],
    ['getBalance 3', 'getBalance', `["${ADDRESS}",{"minContextSlot":18446744073709551615}]`],
  ]);
});

test('a node with a history answers in the shape of a recorded Agave', async () => {
  const history = createHistory({ seed: 7, slots: 90, epochSlots: 432_000, addresses: [ADDRESS] });
  const held = { floor: 0, top: history.tip };
  await using node = startHotNode({ history, held, bigtable: undefined, strictCursors: false });
  const known = history.transactions.find(({ index }) => index === 2)?.signature ?? '';
  await expectShapes(node.url, [
    ['getSlot 1', 'getSlot', '[]'],
    ['getGenesisHash 1', 'getGenesisHash', '[]'],
    ['getFirstAvailableBlock 1', 'getFirstAvailableBlock', '[]'],
    ['getBlockTime 1', 'getBlockTime', '[1]'],
    ['getBlock 8', 'getBlock', '[1000000000]'],
    ['getBlockTime 2', 'getBlockTime', '[1000000000]'],
    ['getBlocks 1', 'getBlocks', '[1,9]'],
    ['getBlocks 2', 'getBlocks', '[9,1]'],
    ['getBlocksWithLimit 1', 'getBlocksWithLimit', '[1,2]'],
    ['getSignaturesForAddress 5', 'getSignaturesForAddress', `["${ADDRESS}",{"limit":1001}]`],
    ['getSignaturesForAddress 6', 'getSignaturesForAddress', `["${ADDRESS}",{"limit":0}]`],
    ['getTransaction 6', 'getTransaction', `["${'1'.repeat(64)}"]`],
    ['getSignatureStatuses 2', 'getSignatureStatuses', `[["${known}"]]`],
  ]);
  const page = await shapeOfAnswer(
    node.url,
    'getSignaturesForAddress',
    `["${ADDRESS}",{"limit":1,"before":"${known}"}]`,
  );
  const [row] = shapeOfRecorded('getSignaturesForAddress 3').match(/\{[^{}]*\}/) ?? [];
  expect(page.replaceAll(/err: .*?, memo: \w+/g, 'err: null, memo: null')).toBe(`[${row}]`);
});

test('the chain of the watcher answers in the shape of a recorded Agave', async () => {
  await using chain = startChain();
  chain.deploy(ADDRESS, 7, ADDRESS);
  const shape = await shapeOfAnswer(
    chain.url.href,
    'getMultipleAccounts',
    `[["${ADDRESS}","${addressOf('nothing')}"],{"encoding":"base64","dataSlice":{"offset":0,"length":8}}]`,
  );
  const account = shapeOfRecorded('getAccountInfo 9').replace(/^\{context: \{.*?\}, value: (.*)\}$/, '$1');
  expect(shape).toBe(`{context: {apiVersion: text, slot: integer}, value: [null | ${account}]}`);
  await expectShapes(chain.url.href, [
    [
      'getSlot 6',
      'getMultipleAccounts',
      `[["${ADDRESS}"],{"dataSlice":{"length":1},"minContextSlot":9007199254740993}]`,
    ],
  ]);
});
