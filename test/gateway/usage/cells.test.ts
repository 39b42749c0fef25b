import { expect, test } from 'bun:test';
import { CALLER, callerOf, rowOf, startUsage } from './started.ts';

test('a stream that outlives many writes, beside others of its key, is counted to the byte', () => {
  using usage = startUsage();
  const begin = () => {
    const counted = usage.usage.begin(CALLER, [{ label: 'getBlock', credits: 1 }]);
    counted.admit();
    return counted;
  };
  const stream = begin();
  for (const bytes of [100, 10, 1_000]) {
    stream.bytes(0, bytes);
    usage.usage.flush();
    usage.usage.flush();
  }
  begin().bytes(0, 1);
  stream.bytes(0, 10_000);
  usage.usage.flush();
  expect(usage.rows()).toEqual([rowOf('getBlock', { calls: 2, credits: 2, bytes_out: 11_111 })]);
});

test('when the ledger takes no writes for very long, memory is bounded and what is lost is said once a turn', async () => {
  using usage = startUsage();
  const mend = usage.break('usage_hours');
  const over = new AbortController();
  const tending = usage.usage.tend(over.signal);
  const turn = async () => {
    usage.advance(1_000);
    await new Promise(setImmediate);
  };
  for (let id = 0; id < 200_003; id++) usage.usage.refused(callerOf(id));
  await turn();
  await turn();
  expect(usage.lost).toEqual([3]);
  mend();
  usage.usage.flush();
  expect(usage.ledger.query('SELECT count(*) AS rows, sum(refused) AS sum FROM usage_hours').get()).toEqual({
    rows: 200_000,
    sum: 200_000,
  });
  over.abort();
  await tending;
});
