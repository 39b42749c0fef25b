import { expect, test } from 'bun:test';
import { startBackend } from '../../fakes/backend.ts';
import { rowText } from '../../fakes/history.ts';
import { startGateway } from '../../started/gateway.ts';
import { shared } from '../../started/shared.ts';
import { ADDRESS, chainOf, fakesOf, rowsOf } from './world.ts';

const history = chainOf(3);
const rows = rowsOf(history);

const fakes = fakesOf(history);
const hot = fakes.node(60, 90);
const faithful = fakes.faithful(0, 2);
const superbank = fakes.superbank(0, 70, true);
const PROFILES = [
  ['Old Faithful', 'old-faithful', faithful.url],
  ['Superbank', 'superbank', superbank.url],
] as const;

const gateways = new Map<string, Awaited<ReturnType<typeof startGateway>>>();
for (const [name, profile, url] of PROFILES) {
  const backends = [
    { name: 'node', url: hot.url },
    { name: 'archive', url, profile },
  ];
  const gateway = shared(await startGateway({ backends }));
  await gateway.gateway.probeAll(new AbortController().signal);
  gateway.maintain();
  gateways.set(name, gateway);
}

const call = (method: string, params: unknown, id: unknown = 1) => ({ jsonrpc: '2.0', id, method, params });
async function textOf(name: string, body: unknown): Promise<string> {
  const gateway = gateways.get(name);
  if (gateway === undefined) throw new Error(`no gateway before ${name}`);
  return (await gateway.post(body, gateway.key())).text();
}

test.each(PROFILES)(
  'an Agave node and %s give one page of signatures, byte for byte (§2.3.2)',
  async (...[name]) => {
    const body = `{"jsonrpc":"2.0","id":18446744073709551615,"method":"getSignaturesForAddress","params":["${ADDRESS}"]}`;
    const answer = await textOf(name, body);
    const memo = (text: string) => (name === 'Superbank' ? text : text.replace('"[4] ', '"'));
    const expected = rows.map((row) =>
      row.slot >= 60 ? rowText(row, `,"transactionIndex":${row.index}`) : memo(rowText(row)),
    );
    expect(answer).toBe(`{"jsonrpc":"2.0","result":[${expected.join(',')}],"id":18446744073709551615}`);
  },
);

test('what is too long for an archive is answered by the live node', async () => {
  const getBlock = (length: number, id = '1') =>
    textOf('Old Faithful', call('getBlock', [1, { encoding: 'json', commitment: 'x'.repeat(length) }], id));
  expect(await getBlock(2_000)).toContain('"code":-32001');
  // A long id is not sent to it.
  expect(await getBlock(20, 'y'.repeat(2_000))).not.toContain('"code":-32001');
});

test('an archive that only says 503 makes an error of its own, and the caller is not told "never"', async () => {
  superbank.state.timesOut = true;
  try {
    for (const [method, params] of [
      ['getTransaction', ['nowhere']],
      ['getSignaturesForAddress', [ADDRESS]],
      ['getBlocks', [50, 75]],
    ] as const) {
      expect(JSON.parse(await textOf('Superbank', call(method, params)))).toEqual({
        jsonrpc: '2.0',
        error: { code: -32019, message: 'Failed to query long-term storage; please try again' },
        id: 1,
      });
    }
  } finally {
    superbank.state.timesOut = false;
  }
});

test("parameters of a megabyte are a live node's to refuse, and are not looked through", async () => {
  await using live = startBackend();
  await using archive = startBackend();
  await using gateway = await startGateway({
    backends: [
      { name: 'live', url: live.url, max_body_bytes: 1_048_576 },
      { name: 'archive', url: archive.url, profile: 'superbank' },
    ],
  });
  const key = gateway.key();
  const members = Array(40_000).fill('"":0').join();
  for (const method of ['getTransaction', 'getBlock', 'getBlocks', 'getSignaturesForAddress']) {
    const body = `{"jsonrpc":"2.0","id":1,"method":"${method}","params":["A",{${members}}]}`;
    expect(await (await gateway.post(body, key)).text()).toContain(`answer to ${method}`);
  }
  expect([live.seen.length, archive.seen.length]).toEqual([4, 0]);
});

test('each request that a call of history makes has an id of its own', async () => {
  const seen = () => [hot, faithful, superbank].flatMap((fake) => fake.seen.map(({ id }) => id));
  const before = seen().length;
  await textOf('Old Faithful', call('getTransaction', ['nowhere'], 'same'));
  await textOf('Superbank', call('getSignaturesForAddress', [ADDRESS], 'same'));
  const ids = seen().slice(before);
  expect(seen().length - before).toBeGreaterThan(3);
  expect([new Set(seen()).size, ids.filter((id) => id.includes('same'))]).toEqual([seen().length, []]);
});
