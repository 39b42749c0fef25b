import { expect, test } from 'bun:test';
import { generateKeyPairSigner } from '@solana/kit';
import type { ConfirmOptions } from '../../bench/arguments.ts';
import { runConfirm } from '../../bench/confirm.ts';
import type { Answered, Rpc } from '../../bench/rpc.ts';
import { systemClock } from '../../shared/clock.ts';
import { optionsOf } from './options.ts';

const LAST_VALID = 150;
const payer = await generateKeyPairSigner();

const OPTIONS: ConfirmOptions = {
  ...optionsOf('confirm', '--connections', '1', '--timeout', '5'),
  pollMs: 5, // below what the command line accepts
};

const result = (value: unknown): Answered<unknown> => ({ kind: 'result', result: value });
const refused = (outcome: string, retryAfter?: number): Answered<unknown> => ({
  kind: 'refused',
  outcome,
  sentence: outcome,
  retryAfter,
});
const status = (confirmationStatus: string, err: unknown = null) =>
  result({ value: [{ confirmationStatus, err }] });
const NO_STATUS = result({ value: [null] });

/** What a cluster answers to the n-th call of a method, from 0; the rest is a cluster on which all goes well. */
type Script = Readonly<Record<string, (n: number) => Answered<unknown>>>;

async function confirm(
  script: Script,
  more: Partial<ConfirmOptions> = {},
  { stop = new AbortController(), isNew = false } = {},
) {
  const well: Script = {
    getLatestBlockhash: () =>
      result({ value: { blockhash: payer.address, lastValidBlockHeight: LAST_VALID } }),
    getBlockHeight: () => result(1),
    sendTransaction: () => result('sent'),
    getSignatureStatuses: () => status('finalized'),
  };
  const calls: { method: string; params: readonly unknown[]; atMs: number }[] = [];
  const rpc = async (method: string, params: readonly unknown[], fits: (result: unknown) => boolean) => {
    const n = calls.filter((call) => call.method === method).length;
    calls.push({ method, params, atMs: systemClock.monotonic() });
    const answer = (script[method] ?? well[method])?.(n) ?? refused('200 -32601');
    return answer.kind === 'result' && !fits(answer.result) ? refused('not the result') : answer;
  };
  const ran = await runConfirm(
    { ...OPTIONS, ...more },
    {
      clock: systemClock,
      rpc: rpc as Rpc, // what a result is depends on the method
      payer,
      isNew,
      onProgress: () => undefined,
      signal: stop.signal,
    },
  );
  const of = (method: string) => calls.filter((call) => call.method === method);
  return { ...ran, outcomes: ran.recorder.outcomes, of };
}

test('each commitment has its time, also those that came between two polls', async () => {
  const statuses = [NO_STATUS, status('processed'), status('finalized')];
  const { outcomes, recorder } = await confirm({ getSignatureStatuses: (n) => statuses[n] ?? NO_STATUS });
  expect(outcomes).toEqual({ finalized: 1 });
  const names = [recorder.all.timing(), ...recorder.labels].map(({ name, count }) => `${name} ${count}`);
  expect(names).toEqual(['finalized 1', 'accepted 1', 'processed 1', 'confirmed 1']);
});

test('a transfer that does not arrive has expired when its blockhash is too old, and is not made anew', async () => {
  const { outcomes, of } = await confirm({
    getSignatureStatuses: () => NO_STATUS,
    getBlockHeight: (n) => result(n < 3 ? LAST_VALID : LAST_VALID + 1),
  });
  expect(outcomes).toEqual({ expired: 1 });
  expect(of('sendTransaction')).toHaveLength(1);
  // The fourth height was too old; the fifth look was the last.
  expect(of('getSignatureStatuses')).toHaveLength(5);
});

test('one that arrives at the last look has arrived', async () => {
  const { outcomes } = await confirm({
    getSignatureStatuses: (n) => (n === 0 ? NO_STATUS : status('finalized')),
    getBlockHeight: () => result(LAST_VALID + 1),
  });
  expect(outcomes).toEqual({ finalized: 1 });
});

test('one whose sending had no answer is waited for all the same, and sent once', async () => {
  const { outcomes, of } = await confirm({
    sendTransaction: () => ({ kind: 'failure', reason: 'no answer in time' }),
  });
  expect(outcomes).toEqual({ 'sendTransaction: no answer in time': 1, finalized: 1 });
  expect(of('sendTransaction')).toHaveLength(1);
});

test('one that was refused is not polled for', async () => {
  const { outcomes, of, recorder } = await confirm({ sendTransaction: () => refused('200 -32002') });
  expect(outcomes).toEqual({ '200 -32002': 1 });
  expect([of('getSignatureStatuses').length, recorder.failures]).toEqual([0, 1]);
});

test('one that fails on the chain is no success', async () => {
  const { outcomes } = await confirm({
    getSignatureStatuses: () => status('confirmed', { InstructionError: [0, 'x'] }),
  });
  expect(outcomes).toEqual({ 'failed on the chain': 1 });
});

test('polls and sends wait as long as a refusal says', async () => {
  const { of } = await confirm({
    getSignatureStatuses: (n) => (n === 0 ? refused('429 -429', 1) : status('finalized')),
  });
  const [first, second] = of('getSignatureStatuses');
  expect((second?.atMs ?? 0) - (first?.atMs ?? 0)).toBeGreaterThanOrEqual(1_000);
  const sent = await confirm(
    { sendTransaction: (n) => (n === 0 ? refused('429 -429', 1) : result('')) },
    { calls: 2 },
  );
  expect(sent.outcomes).toEqual({ '429 -429': 1, finalized: 1 });
  const height = await confirm({ getBlockHeight: (n) => (n === 0 ? refused('429 -429', 1) : result(1)) });
  const [held, look, statuses] = [...height.of('getBlockHeight'), ...height.of('getSignatureStatuses')];
  expect((look?.atMs ?? 0) - (held?.atMs ?? 0)).toBeGreaterThanOrEqual(1_000);
  expect(statuses?.atMs ?? 0).toBeGreaterThanOrEqual(look?.atMs ?? Infinity);
  const [refusal, next] = sent.of('sendTransaction');
  expect((next?.atMs ?? 0) - (refusal?.atMs ?? 0)).toBeGreaterThanOrEqual(1_000);
  // Another amount: the second transfer is not the first one again.
  expect(next?.params[0]).not.toBe(refusal?.params[0]);
});

test.each(['requestAirdrop', 'getBalance', 'getLatestBlockhash', 'sendTransaction', 'getSignatureStatuses'])(
  'a refusal of %s that holds longer than the bound ends the run there',
  async (method) => {
    const startMs = systemClock.monotonic();
    const { of } = await confirm(
      {
        requestAirdrop: () => result(''),
        getBalance: () => result({ value: 1 }),
        [method]: () => refused('429 -429', 300),
      },
      { calls: undefined, seconds: 0.2, timeoutMs: 300 },
      { isNew: true },
    );
    expect(of(method)).toHaveLength(1);
    expect(systemClock.monotonic() - startMs).toBeLessThan(10_000);
  },
);

test('the time for which refusals hold polls back is no silence', async () => {
  const { outcomes } = await confirm(
    { getSignatureStatuses: (n) => (n < 2 ? refused('429 -429', 1) : status('finalized')) },
    { timeoutMs: 500 },
  );
  expect(outcomes).toEqual({ finalized: 1 });
});

test('after a failure there is a pause', async () => {
  const { of } = await confirm(
    { getLatestBlockhash: () => ({ kind: 'failure', reason: 'no answer' }) },
    { calls: undefined, seconds: 0.3 },
  );
  expect(of('getLatestBlockhash').length).toBeWithin(1, 10);
});

test('a run that is stopped while its airdrop is awaited has not failed', async () => {
  const stop = new AbortController();
  const getBalance = () => {
    stop.abort();
    return result({ value: 0 });
  };
  const { failure, outcomes } = await confirm(
    { requestAirdrop: () => result('airdrop'), getBalance },
    {},
    { stop, isNew: true },
  );
  expect([failure, outcomes]).toEqual([undefined, {}]);
});

test('a run that is stopped leaves what is under way out', async () => {
  const stop = new AbortController();
  const { outcomes, recorder } = await confirm(
    {
      getSignatureStatuses: (n) => {
        if (n === 2) stop.abort();
        return NO_STATUS;
      },
    },
    { calls: 10 },
    { stop },
  );
  expect([outcomes, recorder.failures]).toEqual([{}, 0]);
});

test.each([
  [
    'no answers',
    { getSignatureStatuses: () => ({ kind: 'failure', reason: 'no answer' }) },
    'no status any more',
  ],
  ['no statuses', { getSignatureStatuses: () => result(null) }, 'no status any more'],
  ['a chain that stands still', { getSignatureStatuses: () => NO_STATUS }, 'no status any more'],
  [
    'a blockhash that is none',
    { getLatestBlockhash: () => result({ value: { blockhash: 'zz' } }) },
    'getLatestBlockhash: not the result',
  ],
  [
    'a transfer that is never final',
    { getBlockHeight: (n: number) => result(100 * n), getSignatureStatuses: () => status('processed') },
    'not finalized in time',
  ],
] as [string, Script, string][])('ends with %s', async (_, script, outcome) => {
  const { outcomes } = await confirm(script, { timeoutMs: 100 });
  expect(outcomes).toEqual({ [outcome]: 1 });
});
