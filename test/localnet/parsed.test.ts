import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { getCreateAccountInstruction } from '@solana-program/system';
import {
  extension,
  findAssociatedTokenPda,
  getCreateAssociatedTokenIdempotentInstruction,
  getInitializeMetadataPointerInstruction,
  getInitializeMint2Instruction,
  getInitializeTransferFeeConfigInstruction,
  getMintSize,
  getMintToCheckedInstruction,
  getTransferCheckedInstruction,
  TOKEN_2022_PROGRAM_ADDRESS,
} from '@solana-program/token-2022';
import {
  type Address,
  createSolanaRpc,
  type Instruction,
  type KeyPairSigner,
  type Signature,
  some,
} from '@solana/kit';
import { Connection, PublicKey } from '@solana/web3.js';
import { GENESIS_SLOT } from '../../localnet/genesis/accounts.ts';
import { COMPUTE_BUDGET_PROGRAM, MEMO_PROGRAM } from '../../localnet/protocol/address.ts';
import { keypairNamed } from '../../localnet/protocol/keypair.ts';
import { addressNumber, alice, bob } from './harness.ts';
import { kitWire, signerOf } from './kit-transaction.ts';
import { startServed } from './served.ts';

const DECIMALS = 2;
const TOKEN_2022 = new PublicKey(TOKEN_2022_PROGRAM_ADDRESS);
const memo: Instruction = { programAddress: MEMO_PROGRAM, data: new TextEncoder().encode('for lunch, 🦖') };
const unitLimit: Instruction = {
  programAddress: COMPUTE_BUDGET_PROGRAM,
  data: Uint8Array.of(2, 0x40, 0x0d, 3, 0),
};

describe('what @solana/web3.js reads parsed, over a socket', () => {
  let net: Awaited<ReturnType<typeof startServed>>;
  let connection: Connection;
  let mint: KeyPairSigner;
  let payer: KeyPairSigner;
  let hers: Address;
  let signatures: readonly string[];

  beforeAll(async () => {
    net = await startServed();
    connection = new Connection(net.url, 'confirmed');
    [mint, payer] = [await signerOf(keypairNamed('a mint')), await signerOf(alice)];
    [hers] = await findAssociatedTokenPda({
      owner: alice.address,
      mint: mint.address,
      tokenProgram: TOKEN_2022_PROGRAM_ADDRESS,
    });
    const [his] = await findAssociatedTokenPda({
      owner: bob.address,
      mint: mint.address,
      tokenProgram: TOKEN_2022_PROGRAM_ADDRESS,
    });
    await landed(await connection.requestAirdrop(new PublicKey(alice.address), 5_000_000_000));
    const ata = (owner: Address, account: Address) =>
      getCreateAssociatedTokenIdempotentInstruction({
        payer,
        owner,
        ata: account,
        mint: mint.address,
        tokenProgram: TOKEN_2022_PROGRAM_ADDRESS,
      });
    const amounts = { mint: mint.address, decimals: DECIMALS, amount: 1_050n };
    signatures = [
      await send(...(await mintInstructions())),
      await send(
        ata(alice.address, hers),
        getMintToCheckedInstruction({ ...amounts, token: hers, mintAuthority: payer }),
        memo,
        unitLimit,
      ),
      await send(
        ata(bob.address, his),
        getTransferCheckedInstruction({
          ...amounts,
          source: hers,
          destination: his,
          authority: payer,
          amount: 50n,
        }),
      ),
    ];
  });
  afterAll(async () => {
    expect(net.faults).toEqual([]);
    await net[Symbol.asyncDispose]();
  });

  async function landed(signature: string): Promise<void> {
    for (;;) {
      const { value } = await connection.getSignatureStatus(signature);
      if (value?.err !== undefined && value.err !== null) throw new Error(JSON.stringify(value.err));
      if (value?.confirmationStatus === 'confirmed' || value?.confirmationStatus === 'finalized') return;
      await Bun.sleep(5); // between two questions to a chain that moves by itself
    }
  }

  async function send(...instructions: readonly Instruction[]): Promise<string> {
    const { blockhash } = await connection.getLatestBlockhash();
    const signature = await connection.sendRawTransaction(await kitWire(alice, blockhash, instructions));
    await landed(signature);
    return signature;
  }

  async function mintInstructions(): Promise<readonly Instruction[]> {
    const fee = { epoch: 0n, maximumFee: 7n, transferFeeBasisPoints: 100 };
    const space = getMintSize([
      extension('TransferFeeConfig', {
        transferFeeConfigAuthority: alice.address,
        withdrawWithheldAuthority: alice.address,
        withheldAmount: 0n,
        olderTransferFee: fee,
        newerTransferFee: fee,
      }),
      extension('MetadataPointer', { authority: some(alice.address), metadataAddress: some(mint.address) }),
    ]);
    const lamports = await connection.getMinimumBalanceForRentExemption(space);
    const programAddress = TOKEN_2022_PROGRAM_ADDRESS;
    return [
      getCreateAccountInstruction({ payer, newAccount: mint, lamports, space, programAddress }),
      getInitializeTransferFeeConfigInstruction({
        mint: mint.address,
        transferFeeConfigAuthority: alice.address,
        withdrawWithheldAuthority: alice.address,
        transferFeeBasisPoints: 100,
        maximumFee: 7n,
      }),
      getInitializeMetadataPointerInstruction({
        mint: mint.address,
        authority: alice.address,
        metadataAddress: mint.address,
      }),
      getInitializeMint2Instruction({ mint: mint.address, decimals: DECIMALS, mintAuthority: alice.address }),
    ];
  }

  const parsedAt = (index: number) =>
    connection.getParsedTransaction(signatures[index] ?? '', { maxSupportedTransactionVersion: 0 });

  test('getParsedTransaction: system and Token-2022 instructions with their fields', async () => {
    const { transaction, meta } = (await parsedAt(0)) ?? {};
    const authority = { transferFeeConfigAuthority: alice.address, withdrawWithheldAuthority: alice.address };
    const token = { program: 'spl-token', programId: TOKEN_2022, stackHeight: 1 };
    expect(meta?.err).toBeNull();
    expect(transaction?.message.instructions.slice(1) as unknown).toEqual([
      {
        ...token,
        parsed: {
          type: 'initializeTransferFeeConfig',
          info: { mint: mint.address, ...authority, transferFeeBasisPoints: 100, maximumFee: 7 },
        },
      },
      {
        ...token,
        parsed: {
          type: 'initializeMetadataPointer',
          info: { mint: mint.address, authority: alice.address, metadataAddress: mint.address },
        },
      },
      {
        ...token,
        parsed: {
          type: 'initializeMint2',
          info: { mint: mint.address, decimals: DECIMALS, mintAuthority: alice.address },
        },
      },
    ]);
    expect(transaction?.message.instructions[0]).toMatchObject({
      program: 'system',
      parsed: {
        type: 'createAccount',
        info: { source: alice.address, newAccount: mint.address, owner: TOKEN_2022_PROGRAM_ADDRESS },
      },
    });
    expect(transaction?.message.accountKeys[0]).toEqual({
      pubkey: new PublicKey(alice.address),
      signer: true,
      source: 'transaction',
      writable: true,
    });
  });

  test('getParsedTransaction: what is called inside, memos, and what Agave does not parse', async () => {
    const { transaction, meta } = (await parsedAt(1)) ?? {};
    const [created, minted, noted, budgeted] = transaction?.message.instructions ?? [];
    expect(created).toMatchObject({
      program: 'spl-associated-token-account',
      parsed: {
        type: 'createIdempotent',
        info: { source: alice.address, account: hers, wallet: alice.address },
      },
    });
    expect(minted).toMatchObject({
      parsed: {
        type: 'mintToChecked',
        info: {
          account: hers,
          mintAuthority: alice.address,
          tokenAmount: { amount: '1050', decimals: DECIMALS, uiAmount: 10.5, uiAmountString: '10.5' },
        },
      },
    });
    expect(noted).toMatchObject({ program: 'spl-memo', parsed: 'for lunch, 🦖' });
    expect(budgeted as unknown).toEqual({
      accounts: [],
      data: 'Fj2Eoy',
      programId: new PublicKey(COMPUTE_BUDGET_PROGRAM),
      stackHeight: 1,
    });
    expect(meta?.innerInstructions?.map(({ index }) => index)).toEqual([0]);
    const inner = meta?.innerInstructions?.[0]?.instructions ?? [];
    expect(inner.map((each) => ('parsed' in each ? each.parsed.type : each.data))).toEqual([
      'getAccountDataSize',
      'createAccount',
      'initializeImmutableOwner',
      'initializeAccount3',
    ]);
    expect(inner[0]).toMatchObject({
      program: 'spl-token',
      parsed: { info: { mint: mint.address, extensionTypes: ['immutableOwner'] } },
      stackHeight: 2,
    });
  });

  test('getParsedBlock: the same transactions, block by block', async () => {
    const found = await parsedAt(2);
    const block = await connection.getParsedBlock(found?.slot ?? 0, { maxSupportedTransactionVersion: 0 });
    expect(block.transactions.map(({ transaction }) => transaction.signatures[0])).toContain(
      signatures[2] ?? '',
    );
    // Its types tell of the transactions without their messages.
    expect(block.transactions[0]?.transaction as unknown).toMatchObject({
      message: {
        instructions: [{ parsed: { type: 'createIdempotent' } }, { parsed: { type: 'transferChecked' } }],
      },
    });
  });

  test('getParsedTokenAccountsByOwner: accounts of Token-2022 with extensions', async () => {
    const { value } = await connection.getParsedTokenAccountsByOwner(new PublicKey(alice.address), {
      programId: TOKEN_2022,
    });
    expect(value.map(({ pubkey }) => pubkey.toBase58())).toEqual([hers]);
    expect(value[0]?.account.data).toEqual({
      program: 'spl-token-2022',
      parsed: {
        type: 'account',
        info: {
          extensions: [
            { extension: 'immutableOwner' },
            { extension: 'transferFeeAmount', state: { withheldAmount: 0 } },
          ],
          isNative: false,
          mint: mint.address,
          owner: alice.address,
          state: 'initialized',
          tokenAmount: { amount: '1000', decimals: DECIMALS, uiAmount: 10, uiAmountString: '10' },
        },
      },
      space: 182,
    });
    const largest = await connection.getTokenLargestAccounts(new PublicKey(mint.address));
    expect(largest.value.map(({ amount }) => amount)).toEqual(['1000', '49']);
  });

  test('getParsedAccountInfo: a mint with extensions, a sysvar, a program', async () => {
    const parsed = async (key: string) =>
      (await connection.getParsedAccountInfo(new PublicKey(key))).value?.data;
    const fee = { epoch: expect.any(Number), maximumFee: 7, transferFeeBasisPoints: 100 };
    expect(await parsed(mint.address)).toMatchObject({
      program: 'spl-token-2022',
      parsed: {
        type: 'mint',
        info: {
          supply: '1050',
          extensions: [
            {
              extension: 'transferFeeConfig',
              state: { olderTransferFee: fee, newerTransferFee: fee, withheldAmount: 0 },
            },
            {
              extension: 'metadataPointer',
              state: { authority: alice.address, metadataAddress: mint.address },
            },
          ],
        },
      },
    });
    expect(await parsed('SysvarRent111111111111111111111111111111111')).toMatchObject({
      program: 'sysvar',
      parsed: { type: 'rent', info: { lamportsPerByteYear: expect.any(String), burnPercent: 50 } },
    });
    const hashes = JSON.stringify(await parsed('SysvarS1otHashes111111111111111111111111111'));
    expect(hashes).toContain(`"slot":${GENESIS_SLOT - 100n}`);
    const history = JSON.stringify(await parsed('SysvarS1otHistory11111111111111111111111111'));
    expect(history).toMatch(/"bits":"[01]{1048576}"/);
    const program = await parsed(TOKEN_2022_PROGRAM_ADDRESS);
    expect(program).toMatchObject({ program: 'bpf-upgradeable-loader', parsed: { type: 'program' } });
  });

  test('@solana/kit reads the same', async () => {
    const rpc = createSolanaRpc(net.url);
    const config = {
      encoding: 'jsonParsed',
      commitment: 'confirmed',
      maxSupportedTransactionVersion: 0,
    } as const;
    const found = await rpc.getTransaction(signatures[1] as Signature, config).send(); // web3.js has no brand
    expect(found?.transaction.message.instructions).toHaveLength(4);
    const block = await rpc.getBlock(found?.slot ?? 0n, config).send();
    expect(block?.transactions.map(({ transaction }) => transaction.signatures[0] as string)).toContain(
      signatures[1] ?? '',
    );
    const { value } = await rpc
      .getAccountInfo(hers, { encoding: 'jsonParsed', commitment: 'confirmed' })
      .send();
    expect(value?.data).toMatchObject({ parsed: { info: { tokenAmount: { amount: '1000' } } } });
  });

  test('simulated inner instructions are parsed, too', async () => {
    const { blockhash } = await connection.getLatestBlockhash();
    const wire = await kitWire(alice, blockhash, [
      getCreateAssociatedTokenIdempotentInstruction({
        payer,
        owner: addressNumber(7),
        ata: (
          await findAssociatedTokenPda({
            owner: addressNumber(7),
            mint: mint.address,
            tokenProgram: TOKEN_2022_PROGRAM_ADDRESS,
          })
        )[0],
        mint: mint.address,
        tokenProgram: TOKEN_2022_PROGRAM_ADDRESS,
      }),
    ]);
    const body = {
      jsonrpc: '2.0',
      id: 1,
      method: 'simulateTransaction',
      params: [
        Buffer.from(wire).toString('base64'),
        { encoding: 'base64', innerInstructions: true, commitment: 'confirmed' },
      ],
    };
    const answer = await fetch(net.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    expect(await answer.text()).toContain('"type":"initializeAccount3"');
  });
});
