import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { AnchorProvider, BN, Program, Wallet } from '@coral-xyz/anchor';
import { Keypair, LAMPORTS_PER_SOL, PublicKey } from '@solana/web3.js';
import { counterElf, ERRORS } from '../fixtures/anchor/counter-elf.ts';
import { counterIdl, type CounterIdl } from '../fixtures/anchor/counter-idl.ts';
import { deployProgram } from '../fixtures/anchor/deploy.ts';
import { quickly } from './quickly.ts';
import { startTiers } from './tiers.ts';

const U64_MAX = new BN('18446744073709551615');

let tiers: Awaited<ReturnType<typeof startTiers>>;
let provider: AnchorProvider;
let program: Program<CounterIdl>;
beforeAll(async () => {
  tiers = await startTiers();
  const payer = Keypair.generate();
  // anchor waits through its Connection: one that polls is all that an endpoint without WebSocket needs.
  const connection = quickly(tiers.endpoint());
  await connection.confirmTransaction(
    await connection.requestAirdrop(payer.publicKey, 10 * LAMPORTS_PER_SOL),
  );
  const address = await deployProgram(tiers.endpoint(), counterElf());
  provider = new AnchorProvider(connection, new Wallet(payer), { commitment: 'confirmed' });
  program = new Program(counterIdl(address), provider);
}, 30_000);
afterAll(async () => tiers[Symbol.asyncDispose]());

/** Makes a counter with `methods.initialize(…).rpc()`; gives its address. */
async function initialize(start: BN): Promise<PublicKey> {
  const counter = Keypair.generate();
  await program.methods
    .initialize(start)
    .accounts({ counter: counter.publicKey, authority: provider.publicKey })
    .preInstructions([await program.account.counter.createInstruction(counter)])
    .signers([counter])
    .rpc();
  return counter.publicKey;
}

function customError(code: number) {
  return { InstructionError: [0, { Custom: code }] };
}

describe('anchor, unchanged, with the key in the URL and a Connection that polls', () => {
  test('methods.rpc() sends and account.fetch reads, a u64 beyond 2^53 too', async () => {
    const counter = await initialize(U64_MAX.subn(2));
    await program.methods.add(new BN(2)).accounts({ counter }).rpc();
    expect((await program.account.counter.fetch(counter)).count.toString()).toBe(U64_MAX.toString());
  });

  test('account.all() finds every account by its discriminator, and fewer with filters', async () => {
    const made = [
      await initialize(new BN(700)),
      await initialize(new BN(701)),
      await initialize(new BN(701)),
    ];
    const all = await program.account.counter.all();
    const found = new Set(all.map(({ publicKey }) => publicKey.toBase58()));
    for (const counter of made) expect(found).toContain(counter.toBase58());
    for (const { account } of all) expect(account.authority).toEqual(provider.publicKey);

    const bytes = new BN(701).toArrayLike(Buffer, 'le', 8);
    const filtered = await program.account.counter.all(bytes); // after the discriminator
    expect(filtered.map(({ account }) => account.count.toNumber())).toEqual([701, 701]);
    const none = await program.account.counter.all([
      { memcmp: { offset: 16, bytes: PublicKey.default.toBase58() } },
    ]);
    expect(none).toEqual([]);
  });

  test('fetchMultiple keeps places over more accounts than one call takes', async () => {
    const counter = await initialize(new BN(9));
    const asked = Array.from({ length: 150 }, (_, i) => (i === 120 ? counter : Keypair.generate().publicKey));
    const read = await program.account.counter.fetchMultiple(asked);
    expect(read.map((account) => account?.count.toNumber() ?? null)).toEqual(
      asked.map((at) => (at === counter ? 9 : null)),
    );
    expect(await program.account.counter.fetchNullable(Keypair.generate().publicKey)).toBeNull();
  });

  test("the preflight's refusal arrives with its logs, and anchor names the program out of them", async () => {
    const counter = await initialize(U64_MAX);
    const failing = program.methods.add(new BN(1)).accounts({ counter });
    const error = await failing.rpc().catch((reason) => reason);
    const overflow = 'custom program error: 0x1770';
    expect(error.message).toContain(`Error processing Instruction 0: ${overflow}`);
    expect(error.logs).toContain(`Program ${program.programId} failed: ${overflow}`);
    expect(String(error.program)).toBe(program.programId.toBase58());
    expect(error.signature).toBe('');
    await expect(failing.simulate()).rejects.toMatchObject({
      simulationResponse: { err: customError(ERRORS.overflow) },
    });
  });
});
