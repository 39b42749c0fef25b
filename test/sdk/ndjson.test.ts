import { afterAll, beforeAll, expect, test } from 'bun:test';
import { startStack } from '../started/stack.ts';

const LOADER = 'BPFLoaderUpgradeab1e11111111111111111111111';

let service: Awaited<ReturnType<typeof startStack>>;
let key: string;
beforeAll(async () => {
  service = await startStack();
  key = service.key('scale');
});
afterAll(async () => service[Symbol.asyncDispose]());

/** The loader's accounts on the real chain, through the gateway. */
async function loaderAccounts(accept: string, withContext: boolean): Promise<string> {
  const params = [LOADER, { encoding: 'base64', dataSlice: { offset: 0, length: 45 }, withContext }];
  const answer = await fetch(service.url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-token': key, accept },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'getProgramAccounts', params }),
  });
  expect(answer.headers.get('content-type')).toStartWith(accept);
  return answer.text();
}

/** The text of each account in a JSON answer, keyed by its address: the order of a scan is not promised. */
function byAddress(accounts: readonly { pubkey: string }[]) {
  return accounts.toSorted((a, b) => a.pubkey.localeCompare(b.pubkey));
}

test.each([false, true])(
  'every account of the upgradeable loader comes as a line, as the JSON answer has it (withContext %p)',
  async (withContext) => {
    const json = await loaderAccounts('application/json', withContext);
    const { result } = JSON.parse(json);
    const accounts = withContext ? result.value : result;
    expect(accounts.length).toBeGreaterThan(0);

    const lines = (await loaderAccounts('application/x-ndjson', withContext)).split('\n');
    expect(lines.pop()).toBe('');
    const last = JSON.parse(lines.pop() ?? '');
    expect(last).toEqual({ accounts: accounts.length, slot: withContext ? expect.any(Number) : null });
    if (withContext) expect(last.slot).toBeGreaterThanOrEqual(result.context.slot);
    expect(byAddress(lines.map((line) => JSON.parse(line)))).toEqual(byAddress(accounts));
    // The texts, not only what JavaScript's numbers make of them.
    for (const line of lines) expect(json).toContain(line);
    expect(json).toContain('18446744073709551615');
  },
);
