import { expect, test } from 'bun:test';
import { startLiveNode } from './live-node.ts';

async function ask(url: string, method: string, ...params: unknown[]): Promise<unknown> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  const response = await fetch(url, { method: 'POST', body });
  if (response.status !== 200) return response.status;
  const { result, error }: { result?: unknown; error?: { code: number } } = JSON.parse(await response.text());
  return error?.code ?? result;
}

test('a live node answers with its slots, health and first block, by its current state', async () => {
  await using node = startLiveNode({ slot: 500, floor: 7 });
  expect(await ask(node.url, 'getSlot', { commitment: 'processed' })).toBe(500);
  expect(await ask(node.url, 'getSlot', { commitment: 'confirmed' })).toBe(499);
  expect(await ask(node.url, 'getSlot')).toBe(468);
  expect(await ask(node.url, 'getHealth')).toBe('ok');
  expect(await ask(node.url, 'getFirstAvailableBlock')).toBe(7);
  expect(await ask(node.url, 'getGenesisHash')).toBe('G1');
  expect(await ask(node.url, 'getBalance', 'x', { commitment: 'processed', minContextSlot: 501 })).toBe(
    -32016,
  );
  expect(await ask(node.url, 'getBalance', 'x', { commitment: 'processed', minContextSlot: 500 })).toEqual({
    context: { apiVersion: '4.2.0', slot: 500 },
    value: null,
  });
  node.now.behind = 200;
  expect(await ask(node.url, 'getHealth')).toBe(-32005);
  node.now.down = true;
  expect(await ask(node.url, 'getHealth')).toBe(503);
  node.now.hangs = true;
  const hung = ask(node.url, 'getHealth').catch(() => 'ended');
  while (node.seen.length > 0 && !node.pending()) await Bun.sleep(1); // until it is there
  expect(await Promise.race([hung, Bun.sleep(20)])).toBeUndefined();
});
