import { describe, expect, test } from 'bun:test';
import { METHODS } from '../../../shared/config/methods.ts';
import { failure, startBackend } from '../../fakes/backend.ts';
import { startGateway } from '../../started/gateway.ts';
import { counted, countedOf } from './counted.ts';
import { shared } from '../../started/shared.ts';

const call = (method: string, id: unknown = 1) => ({ jsonrpc: '2.0', id, method });

const backend = shared(startBackend());
const gateway = shared(
  await startGateway({
    backends: [{ name: 'a', url: backend.url }],
    gateway: { max_body_bytes: 10_000 },
    plans: {
      trial: { rps: 1_000, burst: 1_000, credits: 100_000, max_batch: 200 },
      scale: { max_batch: 200 },
      slow: { rps: 1, burst: 2 },
    },
  }),
);

const post = (body: unknown, key?: string, init?: Parameters<typeof gateway.post>[2]) =>
  gateway.post(body, key, init).then(async (answer) => (await answer.text(), answer.status));

describe('D7 D11 every method is metered, unknown ones too', () => {
  const names = [...METHODS.keys(), 'eth_call', 'getConfirmedBlock', 'accountSubscribe', '__proto__'];

  test('alone and in a batch, on plans with and without a credit limit, at the price that the answer names (§2.4.4)', async () => {
    for (const plan of ['trial', 'scale']) {
      const [single, batch] = [gateway.key(plan, 100_000), gateway.key(plan, 100_000)];
      let cost = 0;
      for (const name of names) {
        const { headers } = await gateway.post(call(name), single);
        cost += Number(headers.get('x-credits-cost'));
      }
      const calls = names.map((name) => call(name));
      await post(calls, batch);
      for (const key of [single, batch]) {
        const rows = countedOf(gateway, key);
        expect(new Set(Object.keys(rows))).toEqual(new Set([...METHODS.keys(), 'unknown']));
        expect(rows['unknown']?.calls).toBe(4);
        const sum = Object.values(rows).reduce((total, { credits }) => total + credits, 0);
        expect(sum).toBe(cost);
      }
    }
  });

  test('a notification and a malformed element of a batch are calls without a method', async () => {
    const key = gateway.key('trial', 100);
    await post([{ jsonrpc: '2.0', method: 'getSlot' }, 7, call('getSlot')], key);
    const rows = countedOf(gateway, key);
    expect([rows['-']?.calls, rows['-']?.credits, rows['-']?.errors]).toEqual([2, 0, 1]);
    expect(rows['getSlot']?.credits).toBe(1);
  });
});

describe('D5 what is refused costs nothing, and is counted', () => {
  test('429, each call of the request under its method', async () => {
    const key = gateway.key('slow');
    expect(await post([call('getSlot'), call('getBlock')], key)).toBe(200);
    expect(await post([call('getSlot'), call('getSlot'), call('x')], key)).toBe(429);
    const { getSlot, getBlock, unknown } = countedOf(gateway, key);
    expect([getSlot?.calls, getSlot?.credits, getSlot?.refused]).toEqual([1, 1, 2]);
    expect([getBlock?.refused, unknown]).toEqual([0, counted({ refused: 1 })]);
  });

  test('402', async () => {
    const key = gateway.key('trial', 10);
    expect(await post(call('getProgramAccounts'), key)).toBe(402);
    expect(countedOf(gateway, key)).toEqual({ getProgramAccounts: counted({ refused: 1 }) });
  });

  test.each([
    [400, 'not JSON', {}],
    [400, '[]', {}],
    [413, 'x'.repeat(10_001), {}],
    [415, '{}', { headers: { 'content-type': 'text/plain' } }],
    [405, '{}', { method: 'PUT' }],
  ] as const)('%i of a request that has no method: %.12s', async (status, body, init) => {
    const key = gateway.key();
    expect(await post(body, key, init)).toBe(status);
    expect(countedOf(gateway, key)).toEqual({ '-': counted({ refused: 1 }) });
  });

  test('401 is counted for no key', async () => {
    const count = () => gateway.ledger.query('SELECT count(*) FROM usage_hours').values();
    gateway.gateway.flush();
    const before = count();
    expect(await post(call('getSlot'), 'sluice_nobody')).toBe(401);
    expect(await post('x'.repeat(10_001), 'sluice_nobody')).toBe(401);
    expect(await post(call('getSlot'), gateway.key(null))).toBe(401);
    gateway.gateway.flush();
    expect(count()).toEqual(before);
  });

  test.each(['trial', 'scale'])('an error of the backend on plan %s: a call that failed', async (plan) => {
    const key = gateway.key(plan, 100);
    backend.script(() => new Response('down', { status: 500 }));
    expect(await post(call('getSlot'), key)).toBe(503);
    expect(await post([call('getSlot'), call('getSlot')], key)).toBe(200);
    backend.script(() => undefined);
    const { getSlot } = countedOf(gateway, key);
    expect([getSlot?.calls, getSlot?.credits, getSlot?.errors, getSlot?.refused]).toEqual([3, 0, 3, 0]);
  });
});

test('a process that ends waits for another that holds the ledger, and writes what it has counted', async () => {
  await using gateway = await startGateway({ backends: [{ name: 'a', url: backend.url }] });
  const key = gateway.key('scale');
  expect((await gateway.post(call('getSlot'), key)).status).toBe(200);
  const holds = `
    const { Database } = require('bun:sqlite');
    const ledger = new Database(process.argv[1]);
    ledger.run('BEGIN IMMEDIATE');
    require('node:fs').writeSync(1, 'holds');
    Bun.sleepSync(150);
    ledger.run('COMMIT');`;
  const other = Bun.spawn([process.execPath, '-e', holds, gateway.ledger.filename], { stdout: 'pipe' });
  await other.stdout.getReader().read();
  await gateway.gateway.close();
  expect(gateway.ledger.query('SELECT method, calls FROM usage_hours').values()).toEqual([['getSlot', 1]]);
  expect(await other.exited).toBe(0);
});

test('an error of the method is counted and paid for, in a batch and compressed', async () => {
  const key = gateway.key('trial', 100);
  const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
  backend.script((seen) => {
    if (seen.method === 'getEpochInfo') return failure(seen, -32602, 'no "error" here');
    if (seen.method !== 'getVersion') return undefined;
    const error = `{"jsonrpc":"2.0","error":{"code":-32602,"message":"m"},"id":${seen.id}}`;
    return new Response(Bun.gzipSync(error), { headers });
  });
  expect(await post([call('getEpochInfo'), call('getSlot')], key)).toBe(200);
  expect(await post(call('getVersion'), key)).toBe(200);
  backend.script(() => undefined);
  const { getEpochInfo, getSlot, getVersion } = countedOf(gateway, key);
  expect([getEpochInfo, getVersion]).toMatchObject([1, 2].map(() => ({ calls: 1, credits: 1, errors: 1 })));
  expect(getSlot?.errors).toBe(0);
});

test('keys of one account are counted apart', async () => {
  const [one, other] = [gateway.key(), gateway.key()];
  gateway.accounts.run('UPDATE keys SET account_id = (SELECT min(account_id) FROM keys)');
  await post(call('getSlot'), one);
  await post(call('getBlock'), other);
  const methods = [one, other].map((key) => Object.keys(countedOf(gateway, key)));
  expect(methods).toEqual([['getSlot'], ['getBlock']]);
});
