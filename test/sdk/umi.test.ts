import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import {
  base58,
  createSignerFromKeypair,
  generateSigner,
  type KeypairSigner,
  lamports,
  publicKey,
  sol,
  transactionBuilder,
  type PublicKey,
} from '@metaplex-foundation/umi';
import { ASSETS } from '../fakes/das-assets.ts';
import { JSON_HEADERS } from '../started/gateway.ts';
import { until } from '../started/stack.ts';
import { quickly } from './quickly.ts';
import { startTiers } from './tiers.ts';
import { umiOn } from './umi-client.ts';

const SYSTEM = publicKey('11111111111111111111111111111111');
const LOADER = publicKey('BPFLoaderUpgradeab1e11111111111111111111111');
const CONFIRMED = { commitment: 'confirmed' } as const;

let tiers: Awaited<ReturnType<typeof startTiers>>;
let umi: ReturnType<typeof umiOn>['umi'];
beforeAll(async () => {
  tiers = await startTiers();
  umi = umiOn(quickly(tiers.endpoint())).umi;
  await umi.rpc.airdrop(umi.identity.publicKey, sol(10), CONFIRMED);
});
afterAll(async () => tiers[Symbol.asyncDispose]());

/** The system program's transfer, as umi's own toolbox builds it. */
function transfer(to: PublicKey, amount: bigint) {
  const data = new Uint8Array(12);
  const view = new DataView(data.buffer);
  view.setUint32(0, 2, true);
  view.setBigUint64(4, amount, true);
  const keys = [
    { pubkey: umi.identity.publicKey, isSigner: true, isWritable: true },
    { pubkey: to, isSigner: false, isWritable: true },
  ];
  const instruction = { programId: SYSTEM, keys, data };
  return transactionBuilder().add({ instruction, signers: [umi.identity], bytesCreatedOnChain: 0 });
}

describe('umi on localnet, unchanged, with the key in the URL', () => {
  test('an airdrop arrives, and an account and its balance are read', async () => {
    const { publicKey: own } = umi.identity;
    expect(await umi.rpc.getBalance(own, CONFIRMED)).toEqual(sol(10));
    const account = await umi.rpc.getAccount(own, CONFIRMED);
    expect(account).toMatchObject({
      exists: true,
      owner: SYSTEM,
      lamports: sol(10),
      rentEpoch: expect.any(BigInt),
    });
    const nobody = generateSigner(umi).publicKey;
    expect(await umi.rpc.accountExists(nobody)).toBe(false);
    expect((await umi.rpc.getAccounts([nobody, own, LOADER])).map(({ exists }) => exists)).toEqual([
      false,
      true,
      true,
    ]);
  });

  test('a transfer is sent, confirmed by polling, and read back from history', async () => {
    const to = generateSigner(umi).publicKey;
    const { signature } = await transfer(to, 123_456_789n).sendAndConfirm(umi, { confirm: CONFIRMED });
    expect(await umi.rpc.getBalance(to, CONFIRMED)).toEqual(lamports(123_456_789));

    const [status] = await umi.rpc.getSignatureStatuses([signature]);
    expect(status?.error).toBeNull();
    const read = await umi.rpc.getTransaction(signature, CONFIRMED);
    expect(read?.response.slot).toBe(BigInt(status?.slot ?? 0));
    expect(read?.meta.fee).toEqual(lamports(5_000));
    expect(read?.meta.postBalances).toContainEqual(lamports(123_456_789));
    expect(await umi.rpc.getBlockTime(status?.slot ?? 0)).toBeGreaterThan(1_700_000_000n);
  });

  test('a transfer of more than there is fails in the preflight, with its logs', async () => {
    const failing = transfer(generateSigner(umi).publicKey, 1_000_000_000_000n).send(umi);
    await expect(failing).rejects.toThrow(/insufficient lamports/);
    const built = await transfer(umi.identity.publicKey, 1n).buildAndSign(umi);
    expect((await umi.rpc.simulateTransaction(built)).logs).toContain(`Program ${SYSTEM} success`);
  });

  test('a scan with filters, and many small questions at once', async () => {
    const options = { ...CONFIRMED, filters: [{ dataSize: 36 }], dataSlice: { offset: 0, length: 4 } };
    const programs = await umi.rpc.getProgramAccounts(LOADER, options);
    expect(programs.length).toBeGreaterThan(90);
    expect(programs.every(({ data }) => data.join() === '2,0,0,0')).toBe(true);

    const [slot, blockhash, rent, genesis] = await Promise.all([
      umi.rpc.getSlot(CONFIRMED),
      umi.rpc.getLatestBlockhash(CONFIRMED),
      umi.rpc.getRent(0),
      umi.rpc.getGenesisHash(),
    ]);
    expect(slot).toBeGreaterThan(0);
    expect(base58.serialize(blockhash.blockhash)).toHaveLength(32);
    expect(rent).toEqual(lamports(890_880));
    expect(genesis.length).toBeGreaterThan(30);
  });

  test('the URL alone is enough to read accounts and assets, and to send and poll', async () => {
    const { umi: plain, rpc } = umiOn(tiers.endpoint());
    const { publicKey: own } = umi.identity;
    expect(await rpc.getBalance(own, CONFIRMED)).toEqual(await umi.rpc.getBalance(own, CONFIRMED));
    const [asset] = ASSETS;
    expect((await rpc.getAsset(publicKey(asset?.id ?? ''))).content.metadata.name).toBe('Compressed');

    const to = generateSigner(umi).publicKey;
    const payer = createSignerFromKeypair(plain, umi.identity as KeypairSigner); // made by generateSigner
    const signature = await transfer(to, 2_000_000n)
      .setFeePayer(payer)
      .send(plain, { preflightCommitment: 'confirmed' });
    const status = await until(async () => (await rpc.getSignatureStatuses([signature]))[0]);
    expect(status.error).toBeNull();
    await until(async () => await rpc.accountExists(to, CONFIRMED));
  });

  test("umi's own HTTP client gets an answer when the key is in the URL", async () => {
    const call = { jsonrpc: '2.0', id: 'umi', method: 'getHealth' };
    const headers = { ...JSON_HEADERS, 'x-token': tiers.key() };
    const byHeader = await umi.http.send({ method: 'POST', url: tiers.url, headers, data: call });
    expect(byHeader.status).toBe(401); // it writes the values of headers in lower case, and keys have capitals
    const answer = await umi.http.send({
      method: 'POST',
      url: tiers.endpoint(),
      headers: JSON_HEADERS,
      data: call,
    });
    expect([answer.status, answer.data]).toEqual([200, { jsonrpc: '2.0', result: 'ok', id: 'umi' }]);
  });
});
