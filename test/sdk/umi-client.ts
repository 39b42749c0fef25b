import { type DasApiInterface, dasApi } from '@metaplex-foundation/digital-asset-standard-api';
import { type RpcInterface, generateSigner, keypairIdentity } from '@metaplex-foundation/umi';
import { createUmi } from '@metaplex-foundation/umi-bundle-defaults';
import type { Connection } from '@solana/web3.js';

/** umi with the DAS client and an identity of its own, on an endpoint's URL or on a `Connection` of the caller. */
export function umiOn(endpoint: string | Connection) {
  const umi = (typeof endpoint === 'string' ? createUmi(endpoint) : createUmi(endpoint)).use(dasApi());
  umi.use(keypairIdentity(generateSigner(umi)));
  // dasApi() adds these; its own declaration names a path that umi does not export.
  return { umi, rpc: umi.rpc as RpcInterface & DasApiInterface };
}
