import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { createSolanaRpc, generateKeyPairSigner } from '@solana/kit';
import programs from '../../shared/programs.json';
import { fundPayer, readTarget, upgradeFrom, upgradeProgram, writeBuffer } from '../../localnet/upgrade.ts';
import { systemClock } from '../../shared/clock.ts';
import { upgradeAuthorityKeypair } from '../../localnet/protocol/keypair.ts';
import { serveLocalnet } from '../../localnet/http/server.ts';
import {
  alice,
  base64,
  object,
  RICH,
  ROOTED_LAG,
  startChain,
  stillClock,
  type HarnessOptions,
  builtWire,
  signerOf,
  startServed,
} from './harness.ts';

let net: Awaited<ReturnType<typeof startServed>>;
beforeAll(async () => {
  net = await startServed(programs);
});
afterAll(() => net[Symbol.asyncDispose]());

const signal = new AbortController().signal;
const idAt = (index: number) => programs[index]?.program_id ?? '';
const upgrade = (programId: string, more: Partial<Parameters<typeof upgradeProgram>[0]> = {}) =>
  upgradeProgram({ rpcUrl: net.url, programId, clock: systemClock, signal, ...more });

/** A served chain that moves only while an upgrade waits, with the first program and who may upgrade it. */
async function startStill(accounts: HarnessOptions['accounts'] = []) {
  const still = await startChain({ programs, accounts });
  const server = serveLocalnet({ chain: still.chain, hostname: '127.0.0.1', port: 0, onFault: () => {} });
  const rpc = createSolanaRpc(server.url);
  const context = { rpc, clock: { ...stillClock, sleep: async () => still.advance() }, signal };
  const target = await readTarget(context, idAt(0));
  const signers = async () => {
    const [payer, buffer] = [await generateKeyPairSigner(), await generateKeyPairSigner()];
    await fundPayer(context, payer.address);
    return { payer, buffer, authority: await signerOf(upgradeAuthorityKeypair()) };
  };
  async function dispose(): Promise<void> {
    await server.stop(true);
    still[Symbol.dispose]();
  }
  return { still, context, target, signers, [Symbol.asyncDispose]: dispose };
}

const broken = Bun.serve({ port: 0, fetch: () => new Response('no', { status: 500 }) });
afterAll(() => broken.stop(true));

describe('upgradeProgram', () => {
  test('moves the deploy slot with real loader transactions, again and again', async () => {
    const [first, second] = [await upgrade(idAt(0)), await upgrade(idAt(0))];
    if (first.kind !== 'upgraded' || second.kind !== 'upgraded')
      throw new Error(`${first.kind} ${second.kind}`);
    expect(first.deploySlot).toBeGreaterThan(first.previousSlot);
    expect(second.previousSlot).toBe(first.deploySlot);
    expect(second.deploySlot).toBeGreaterThan(first.deploySlot);
  });

  test.each([
    [idAt(5), `${idAt(5)} is frozen: it has no upgrade authority.`],
    [idAt(11), `${idAt(11)} is not a program of the upgradeable loader (its owner is `],
    [idAt(17), `${idAt(17)} is not a program of the upgradeable loader (its owner is `],
    [idAt(33), `There is no program ${idAt(33)} on this chain.`],
    [idAt(61), `The ProgramData account of ${idAt(61)} is gone.`],
    ['nonsense', 'nonsense is not an address.'],
  ])('of %s says why it cannot: %s', async (programId, sentence) => {
    const expected = expect.stringContaining(sentence);
    expect(await upgrade(programId)).toEqual({ kind: 'failed', sentence: expected });
  });

  test.each<[string, Parameters<typeof upgrade>[1] & { hasOtherKey?: true }, RegExp]>([
    ['with the key of another owner', { hasOtherKey: true }, / may only be redeployed by /],
    [
      'without a localnet',
      { rpcUrl: 'http://127.0.0.1:1' },
      /^No localnet answers at http:\/\/127\.0\.0\.1:1 /,
    ],
    ['against a server that is no RPC', { rpcUrl: broken.url.href }, /^No localnet answers at /],
    ['that takes too long', { timeoutMs: 10 }, / was not redeployed within 10 ms\.$/],
    ['that is aborted', { signal: AbortSignal.abort() }, / was not redeployed within 60000 ms\.$/],
  ])('%s says so', async (_, { hasOtherKey, ...more }, sentence) => {
    const authority = hasOtherKey && { authority: await generateKeyPairSigner() };
    const expected = expect.stringMatching(sentence);
    expect(await upgrade(idAt(2), { ...more, ...authority })).toEqual({ kind: 'failed', sentence: expected });
  });
});

test('an upgraded program runs its new code at once, and its old code at an older commitment', async () => {
  await using upgraded = await startStill(RICH);
  const { still, context, target } = upgraded;
  const elf = new Uint8Array(target.elf);
  elf[64 + 4] = 7; // mov64 r0, 7: it fails with custom error 7
  const signers = await upgraded.signers();
  await writeBuffer(context, { ...target, elf }, signers);
  await upgradeFrom(context, target, signers);

  const errorAt = async (commitment: 'processed' | 'finalized') => {
    const { blockhash } = still.chain.latestBlockhash(still.chain.slotAt(commitment));
    const wire = builtWire(alice, blockhash, [{ program: target.program, accounts: [], data: [] }]);
    const config = { encoding: 'base64', commitment };
    return object(await still.valueOf('simulateTransaction', base64(wire), config))['err'];
  };
  const failed = { InstructionError: [0n, { Custom: 7n }] };
  expect(await errorAt('processed')).toEqual(failed);
  expect(await errorAt('finalized')).toBeNull();
  expect(await errorAt('processed')).toEqual(failed);
  still.advance(ROOTED_LAG);
  expect(await errorAt('finalized')).toEqual(failed);
});

describe('redeploys of one program in one slot', () => {
  test('happen one after the other, each in a slot of its own', async () => {
    await using upgraded = await startStill();
    const { still, context, target } = upgraded;
    const contenders = [await upgraded.signers(), await upgraded.signers(), await upgraded.signers()];
    for (const signers of contenders) await writeBuffer(context, target, signers);
    still.advance();
    const slot = still.chain.slotAt('processed');
    // The slot ends when all three have tried it.
    const sleep = async () => {
      if (still.chain.ledger.inSlot(slot).length < contenders.length) await new Promise(setImmediate);
      else still.advance();
    };
    const contended = { ...context, clock: { ...stillClock, sleep } };
    const slots = await Promise.all(contenders.map((signers) => upgradeFrom(contended, target, signers)));
    const inOrder = slots.toSorted((one, other) => Number(one.deploySlot - other.deploySlot));
    expect(inOrder[0]).toEqual({ previousSlot: target.deploySlot, deploySlot: slot });
    expect(new Set(slots.map(({ deploySlot }) => deploySlot)).size).toBe(contenders.length);
    for (const { previousSlot, deploySlot } of slots) expect(deploySlot).toBeGreaterThan(previousSlot);
    const { deploySlot } = await readTarget(context, idAt(0));
    expect(deploySlot).toBe(inOrder.at(-1)?.deploySlot ?? 0n);
  });
});
