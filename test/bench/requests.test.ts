import { describe, expect, test } from 'bun:test';
import type { Reply } from '../../bench/connection.ts';
import { RESULT, UNREAD } from '../../bench/load.ts';
import { mixFrom } from '../../bench/mixed.ts';
import { batchesFrom, callsFrom, outcomesOf, weightedCallsFrom } from '../../bench/requests.ts';

const random = (count: number) => crypto.getRandomValues(new Uint8Array(count));
const call = { weight: 1, method: 'getBalance', params: '["$address"]' };

const reply = (body: string, status = 200): Reply => ({
  kind: 'reply',
  status,
  retryAfter: undefined,
  bytes: body.length,
  body: Buffer.from(body),
  isWhole: true,
});

describe('requests', () => {
  test('have ids of their own, and another address each', () => {
    const next = callsFrom([call], random);
    const [a, b] = [next(7), next(8)].map(({ body }) => JSON.parse(body));
    expect([a.id, b.id, a.method]).toEqual([7, 8, 'getBalance']);
    expect(a.params[0]).toMatch(/^[1-9A-HJ-NP-Za-km-z]{32,44}$/);
    expect(a.params[0]).not.toBe(b.params[0]);
  });

  test('of a batch have ids that no other batch has', () => {
    const next = batchesFrom(call, 3, random);
    const ids = [0, 1].flatMap((n) => JSON.parse(next(n).body).map(({ id }: { id: number }) => id));
    expect(ids).toEqual([0, 1, 2, 3, 4, 5]);
    expect(next(1).ids).toEqual([3, 4, 5]);
  });

  test('are chosen by their weights', () => {
    const weighted = [
      { ...call, label: 'often' },
      { ...call, weight: 3, label: 'more' },
    ];
    const next = callsFrom(weighted, random);
    const labels = Array.from({ length: 4_096 }, (_, n) => next(n).label);
    expect(labels.filter((label) => label === 'more').length).toBeWithin(2_850, 3_300);
  });

  test('come from a file of lines, or its first wrong line is named', () => {
    const lines = '{"method":"getSlot"}\n\n{"weight":2,"method":"getBalance","params":["a"],"label":"b"}\n';
    expect(weightedCallsFrom(lines)).toEqual([
      { weight: 1, method: 'getSlot', params: '[]', label: 'getSlot' },
      { weight: 2, method: 'getBalance', params: '["a"]', label: 'b' },
    ]);
    expect(weightedCallsFrom('{"method":"getSlot"}\n{"method":1.5}')).toStartWith('line 2 is no ');
    expect(weightedCallsFrom('{"method":"getSlot","weight":-1}')).toStartWith('line 1 is no ');
    expect(weightedCallsFrom('{"method":"getSlot","params":3}')).toStartWith('line 1 is no ');
    expect(weightedCallsFrom('\n')).toBe('it has no calls');
  });
});

describe('the outcome of an answer', () => {
  test.each([
    ['{"jsonrpc":"2.0","result":null,"id":1}', 200, RESULT],
    ['{"jsonrpc":"2.0","result":1,"error":null,"id":1}', 200, RESULT],
    ['{"jsonrpc":"2.0","result":1,"id":2}', 200, '200, the id of another call'],
    ['{"jsonrpc":"2.0","error":{"code":-32601,"message":"x"},"id":1}', 200, '200 -32601'],
    ['{"jsonrpc":"2.0","error":{"code":-429,"message":"x"},"id":null}', 429, '429 -429'],
    [
      '{"jsonrpc":"2.0","error":{"code":-429,"message":"Rate limit exceeded: at most 2 scans at once"},"id":1}',
      429,
      '429 -429, at most 2 scans at once',
    ],
    ['{"jsonrpc":"2.0","error":{"code":-429,"message":7},"id":1}', 429, '429 -429'],
    ['<html>busy</html>', 502, 'HTTP 502'],
    ['<html>hello</html>', 200, '200, no JSON-RPC'],
    ['{"jsonrpc":"2.0","result":1,"id":1}', 503, 'HTTP 503, no JSON-RPC'],
    ['[]', 200, '200, another number of answers'],
  ])('%s with status %d is %s', (body, status, outcome) => {
    expect(outcomesOf(reply(body, status), { ids: [1] })).toEqual([outcome]);
  });

  test('of a batch is that of each call', () => {
    const body =
      '[{"jsonrpc":"2.0","result":1,"id":3},{"jsonrpc":"2.0","error":{"code":-402,"message":""},"id":4}]';
    const outcomes = (text: string, ...ids: number[]) => outcomesOf(reply(text), { ids });
    expect(outcomes(body, 3, 4)).toEqual([RESULT, '200 -402']);
    expect(outcomes(body, 4, 3)).toEqual(['200 -402', RESULT]);
    expect(outcomes(body.replace('"id":4', '"id":null'), 4, 3)).toEqual(['200 -402', RESULT]);
    expect(outcomes(body, 3, 5)).toEqual([RESULT, '200, the id of another call']);
    expect(outcomes(body, 3, 4, 5)).toEqual(Array(3).fill('200, another number of answers'));
    const refused = reply('{"jsonrpc":"2.0","error":{"code":-429},"id":null}', 429);
    expect(outcomesOf(refused, { ids: [1, 2] })).toEqual(['429 -429', '429 -429']);
  });

  test('that is too long to be kept is classified by its beginning', () => {
    const long = (text: string) => ({ ...reply(text), isWhole: false });
    expect(outcomesOf(long('{"jsonrpc":"2.0","id":1,"result":[{"pubkey":"'), { ids: [1] })).toEqual([RESULT]);
    expect(outcomesOf(long('[{"jsonrpc":"2.0","result":[1'), { ids: [1, 2] })).toEqual([UNREAD, UNREAD]);
    expect(outcomesOf(long('{"error":{"data":{"result":'), { ids: [1] })).toEqual(['200, no JSON-RPC']);
  });
});

describe('the mix of production', () => {
  const program = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA';

  test('asks for slices whose answers have its sizes', () => {
    // 10,000 accounts of 3,000 bytes: 2 MB without data, 42 MB with all.
    const scans = [{ program, accounts: 10_000, bytes: 2_000_000, dataBytes: 30_000_000 }];
    const { calls, notes } = mixFrom(scans, random);
    expect(calls.map(({ label }) => label)).toEqual(['up to 1 KB', '1-10 MB', '10-50 MB', '50-200 MB']);
    expect(calls.reduce((sum, { weight }) => sum + weight, 0)).toBeCloseTo(1, 2);
    const [, , middle] = calls.map(({ params }) => JSON.parse(params));
    expect(middle[1].dataSlice.length).toBeWithin(1_400, 1_600);
    expect(notes).toContain(
      'No answer of 1-10 KB can be had of these programs: 35.3 % of calls ask for up to 1 KB instead.',
    );
  });

  test('of programs without accounts asks for nothing', () => {
    const { calls } = mixFrom([{ program, accounts: 0, bytes: 40, dataBytes: 0 }], random);
    expect(calls).toHaveLength(1);
    expect(JSON.parse(calls[0]?.params ?? '')[1].filters).toHaveLength(1);
  });
});
