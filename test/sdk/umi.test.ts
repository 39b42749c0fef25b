import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import {
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
