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
const failure = (reason: string): Answered<unknown> => ({ kind: 'failure', reason });
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

test.each([
  ['getSignatureStatuses', status('finalized')],
  ['getBlockHeight', result(1)],
  ['sendTransaction', result('')],
])('everything waits as long as a refusal of %s says', async (method, well) => {
  const script = { [method]: (n: number) => (n === 0 ? refused('429 -429', 1) : well) };
  const { of } = await confirm(script, { calls: 2 });
  const [refusal, next] = of(method);
  const heldUntilMs = (refusal?.atMs ?? 0) + 1_000;
  expect(next?.atMs).toBeGreaterThanOrEqual(heldUntilMs);
  if (method === 'getBlockHeight')
    expect(of('getSignatureStatuses')[0]?.atMs).toBeGreaterThanOrEqual(heldUntilMs);
  // Another amount: the second transfer is not the first one again.
  if (method === 'sendTransaction') expect(next?.params[0]).not.toBe(refusal?.params[0]);
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
  const script = { getLatestBlockhash: () => failure('no answer') };
  const { of } = await confirm(script, { calls: undefined, seconds: 0.3 });
  expect(of('getLatestBlockhash').length).toBeWithin(1, 10);
});

test.each<[string, boolean, (stop: () => void) => Script]>([
  [
    'while its airdrop is awaited',
    true,
    (stop) => ({ requestAirdrop: () => result('airdrop'), getBalance: () => (stop(), result({ value: 0 })) }),
  ],
  ['while it polls', false, (stop) => ({ getSignatureStatuses: (n) => (n === 2 && stop(), NO_STATUS) })],
])(
  'a run that is stopped %s has not failed, and leaves what is under way out',
  async (_, isNew, scriptOf) => {
    const stop = new AbortController();
    const script = scriptOf(() => stop.abort());
    const { failure: why, outcomes, recorder } = await confirm(script, { calls: 10 }, { stop, isNew });
    expect([why, outcomes, recorder.failures]).toEqual([undefined, {}, 0]);
  },
);

test.each<[string, Script, Readonly<Record<string, number>>]>([
  [
    'arrives at the last look has arrived',
    {
      getSignatureStatuses: (n) => (n === 0 ? NO_STATUS : status('finalized')),
      getBlockHeight: () => result(LAST_VALID + 1),
    },
    { finalized: 1 },
  ],
  [
    'had no answer to its sending is waited for all the same, and sent once',
    { sendTransaction: () => failure('no answer in time') },
    { 'sendTransaction: no answer in time': 1, finalized: 1 },
  ],
  ['was refused is over', { sendTransaction: () => refused('200 -32002') }, { '200 -32002': 1 }],
  [
    'fails on the chain is no success',
    { getSignatureStatuses: () => status('confirmed', { InstructionError: [0, 'x'] }) },
    { 'failed on the chain': 1 },
  ],
  [
    'has no answers to its polls ends',
    { getSignatureStatuses: () => failure('no answer') },
    { 'no status any more': 1 },
  ],
  [
    'has no statuses to its polls ends',
    { getSignatureStatuses: () => result(null) },
    { 'no status any more': 1 },
  ],
  [
    'is on a chain that stands still ends',
    { getSignatureStatuses: () => NO_STATUS },
    { 'no status any more': 1 },
  ],
  [
    'has a blockhash that is none ends',
    { getLatestBlockhash: () => result({ value: { blockhash: 'zz' } }) },
    { 'getLatestBlockhash: not the result': 1 },
  ],
  [
    'is never final ends',
    { getBlockHeight: (n) => result(100 * n), getSignatureStatuses: () => status('processed') },
    { 'not finalized in time': 1 },
  ],
])('a transfer that %s', async (_, script, expected) => {
  const { outcomes, of } = await confirm(script, { timeoutMs: 100 });
  expect(outcomes).toEqual(expected);
  expect(of('sendTransaction').length).toBeLessThanOrEqual(1);
  if ('200 -32002' in expected) expect(of('getSignatureStatuses')).toEqual([]);
});
