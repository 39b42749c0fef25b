import { type DasApiInterface, dasApi } from '@metaplex-foundation/digital-asset-standard-api';
import { type RpcInterface, generateSigner, keypairIdentity } from '@metaplex-foundation/umi';
import { createUmi } from '@metaplex-foundation/umi-bundle-defaults';
import type { Connection } from '@solana/web3.js';

/** umi with the DAS client and an identity of its own, on a `Connection` of the caller. */
export function umiOn(connection: Connection) {
  const umi = createUmi(connection).use(dasApi());
  umi.use(keypairIdentity(generateSigner(umi)));
  // dasApi() adds these; its own declaration names a path that umi does not export.
  return { umi, rpc: umi.rpc as RpcInterface & DasApiInterface };
}
