import { expect, test } from 'bun:test';
import { readGenesisHash } from '../../../deploys/watch/read.ts';
import type { CallOutcome } from '../../../deploys/watch/rpc.ts';
import { addressOf } from '../../fakes/chain.ts';

const { signal } = new AbortController();
const HASH: string = addressOf('genesis');

test.each<[string, CallOutcome, string | undefined]>([
  ['a hash', { kind: 'result', result: HASH }, HASH],
  ['a hash of another length', { kind: 'result', result: HASH.slice(8) }, undefined],
  ['nothing', { kind: 'result', result: null }, undefined],
  ['a number', { kind: 'result', result: 5 }, undefined],
  ['an error', { kind: 'error', code: -32601 }, undefined],
  ['no answer at all', { kind: 'failed', reason: 'away', isOverRate: false }, undefined],
])('%s is taken for what it is', async (_, outcome, expected) => {
  const asked: unknown[] = [];
  const call = async (...args: unknown[]) => (asked.push(args), outcome);
  expect(await readGenesisHash(call, signal)).toBe(expected);
  expect(asked).toEqual([['getGenesisHash', [], signal]]);
});
