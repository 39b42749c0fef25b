import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { createSolanaRpc, generateKeyPairSigner } from '@solana/kit';
import programs from '../../deploys/watch/programs.json';
import { fundPayer, readTarget, upgradeFrom, upgradeProgram, writeBuffer } from '../../localnet/upgrade.ts';
import { systemClock } from '../../shared/clock.ts';
import { LOADER_V3 } from '../../localnet/protocol/address.ts';
import { upgradeAuthorityKeypair } from '../../localnet/protocol/keypair.ts';
import { serveLocalnet } from '../../localnet/http/server.ts';
import {
  alice,
  base64,
  object,
  ownedAccount,
  ROOTED_LAG,
  startChain,
  stillClock,
  systemAccount,
} from './harness.ts';
import { signerOf } from './kit-transaction.ts';
import { startServed } from './served.ts';
import { builtWire } from './wire.ts';

let net: Awaited<ReturnType<typeof startServed>>;
beforeAll(async () => {
  net = await startServed(programs);
});
afterAll(() => net[Symbol.asyncDispose]());

const signal = new AbortController().signal;
const idAt = (index: number) => programs[index]?.program_id ?? '';
const upgrade = (programId: string, more: Partial<Parameters<typeof upgradeProgram>[0]> = {}) =>
  upgradeProgram({ rpcUrl: net.url, programId, clock: systemClock, signal, ...more });

describe('upgradeProgram', () => {
  test('moves the deploy slot with real loader transactions, again and again', async () => {
    const first = await upgrade(idAt(0));
    const second = await upgrade(idAt(0));
    if (first.kind !== 'upgraded' || second.kind !== 'upgraded')
      throw new Error(`${first.kind} ${second.kind}`);
    expect(first.deploySlot).toBeGreaterThan(first.previousSlot);
    expect(first.deploySlot).toBeGreaterThanOrEqual(450_000_000n);
    expect(second.previousSlot).toBe(first.deploySlot);
    expect(second.deploySlot).toBeGreaterThan(first.deploySlot);
    expect(second.programId).toBe(idAt(0));
    expect(net.chain.blockTimeOf(second.deploySlot)).toBeGreaterThan(0n);
  });

  test.each([
    [5, 'frozen'],
    [11, 'other-loader'],
    [17, 'other-loader'],
    [33, 'unknown'],
    [61, 'no-program-data'],
  ])('of program %i says why it cannot: %s', async (index, reason) => {
    expect(await upgrade(idAt(index))).toEqual({
      kind: 'not-upgradeable',
      reason: reason as 'frozen', // one of the union's
      sentence: expect.stringContaining(idAt(index)),
    });
  });

  test('of something that is no address says so', async () => {
    expect(await upgrade('nonsense')).toMatchObject({ kind: 'not-upgradeable', reason: 'malformed' });
  });

  test('with the key of somebody else is not tried', async () => {
    const authority = await generateKeyPairSigner();
    expect(await upgrade(idAt(1), { authority })).toMatchObject({
      kind: 'not-upgradeable',
      reason: 'other-authority',
    });
  });

  test('without a localnet says where it looked', async () => {
    const outcome = await upgrade(idAt(0), { rpcUrl: 'http://127.0.0.1:1' });
    expect(outcome).toEqual({
      kind: 'unreachable',
      sentence: expect.stringMatching(/^No localnet answers at http:\/\/127\.0\.0\.1:1 /),
    });
  });

  test('against a server that is no RPC says so', async () => {
    using server = Bun.serve({ port: 0, fetch: () => new Response('no', { status: 500 }) });
    expect(await upgrade(idAt(0), { rpcUrl: server.url.href })).toMatchObject({ kind: 'unreachable' });
  });

  test('gives up when its time is over, and when it is told to', async () => {
    expect(await upgrade(idAt(2), { timeoutMs: 10 })).toMatchObject({ kind: 'timed-out' });
    expect(await upgrade(idAt(2), { signal: AbortSignal.abort() })).toMatchObject({ kind: 'timed-out' });
  });
});

describe('an upgraded program', () => {
  test('runs its new code at once, and its old code in a preflight at an older commitment', async () => {
    using still = await startChain({ programs, accounts: [[alice.address, systemAccount(10_000_000_000n)]] });
    const server = serveLocalnet({ chain: still.chain, hostname: '127.0.0.1', port: 0, onFault: () => {} });
    const context = {
      rpc: createSolanaRpc(server.url),
      clock: { ...stillClock, sleep: async () => still.advance() },
      signal,
    };
    const target = await readTarget(context.rpc, idAt(0), signal);
    if (target.kind !== 'upgradeable') throw new Error(target.sentence);
    const elf = new Uint8Array(target.elf);
    elf[64 + 4] = 7; // mov64 r0, 7: it fails with custom error 7
    const authority = await signerOf(upgradeAuthorityKeypair());
    const signers = {
      payer: await generateKeyPairSigner(),
      buffer: await generateKeyPairSigner(),
      authority,
    };
    await fundPayer(context, signers.payer.address);
    await writeBuffer(context, { ...target, elf }, signers);
    await upgradeFrom(context, target, signers);
    await server.stop(true);

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
});

describe('redeploys of one program in one slot', () => {
  test('happen one after the other, each in a slot of its own', async () => {
    using still = await startChain({ programs });
    const server = serveLocalnet({ chain: still.chain, hostname: '127.0.0.1', port: 0, onFault: () => {} });
    const rpc = createSolanaRpc(server.url);
    const moving = { rpc, clock: { ...stillClock, sleep: async () => still.advance() }, signal };
    try {
      const target = await readTarget(rpc, idAt(0), signal);
      if (target.kind !== 'upgradeable') throw new Error(target.sentence);
      const authority = await signerOf(upgradeAuthorityKeypair());
      const contenders = await Promise.all(
        [0, 1, 2].map(async () => ({
          payer: await generateKeyPairSigner(),
          buffer: await generateKeyPairSigner(),
          authority,
        })),
      );
      for (const signers of contenders) {
        await fundPayer(moving, signers.payer.address);
        await writeBuffer(moving, target, signers);
      }
      still.advance();
      const slot = still.chain.slotAt('processed');
      // The slot ends when all three have tried it.
      const sleep = async () => {
        if (still.chain.ledger.inSlot(slot).length < contenders.length) await Bun.sleep(1);
        else still.advance();
      };
      const context = { rpc, clock: { ...stillClock, sleep }, signal };
      const slots = await Promise.all(contenders.map((signers) => upgradeFrom(context, target, signers)));
      const inOrder = slots.toSorted((one, other) => Number(one.deploySlot - other.deploySlot));
      expect(inOrder[0]).toEqual({ previousSlot: target.deploySlot, deploySlot: slot });
      expect(new Set(slots.map(({ deploySlot }) => deploySlot)).size).toBe(contenders.length);
      for (const { previousSlot, deploySlot } of slots) expect(deploySlot).toBeGreaterThan(previousSlot);
      expect(await readTarget(rpc, idAt(0), signal)).toMatchObject({
        deploySlot: inOrder.at(-1)?.deploySlot,
      });
    } finally {
      await server.stop(true);
    }
  });

  test('are all told as upgraded, whoever was first', async () => {
    const outcomes = await Promise.all([1, 2, 3, 4].map(() => upgrade(idAt(3))));
    expect(outcomes.map(({ kind }) => kind)).toEqual(Array(4).fill('upgraded'));
  });

  test('are not mistaken for another refusal of the loader', async () => {
    const buffer = await generateKeyPairSigner();
    // A buffer that nobody initialized: the loader says InvalidArgument of it, too, in any slot.
    const blank = ownedAccount(LOADER_V3, new Uint8Array(1_000));
    using still = await startChain({ programs, accounts: [[buffer.address, blank]] });
    const server = serveLocalnet({ chain: still.chain, hostname: '127.0.0.1', port: 0, onFault: () => {} });
    const rpc = createSolanaRpc(server.url);
    const context = { rpc, clock: { ...stillClock, sleep: async () => still.advance() }, signal };
    try {
      const target = await readTarget(rpc, idAt(0), signal);
      if (target.kind !== 'upgradeable') throw new Error(target.sentence);
      const authority = await signerOf(upgradeAuthorityKeypair());
      const payer = await generateKeyPairSigner();
      await fundPayer(context, payer.address);
      await expect(upgradeFrom(context, target, { payer, buffer, authority })).rejects.toThrow(
        /InvalidArgument/,
      );
    } finally {
      await server.stop(true);
    }
  });
});
