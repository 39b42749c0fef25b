import { createDefaultRpcTransport } from '@solana/kit';
import { createHelius } from 'helius-sdk';
import { retrying } from './send-and-confirm.ts';

const { SLUICE_URL: url = 'http://127.0.0.1:8899', SLUICE_KEY: key = '', ASSET: id = '' } = process.env;

// `baseUrl` alone is enough, with the key in the URL: createHelius({ baseUrl: url, apiKey: key }).
const helius = createHelius({
  baseUrl: url,
  transport: () => retrying(createDefaultRpcTransport({ url, headers: { 'x-token': key } })),
});
console.log('slot', await helius.getSlot());
try {
  console.log('asset', (await helius.getAsset({ id })).content?.metadata?.name);
} catch (error) {
  // An `Error` with the server's words: on the embedded chain, nobody serves DAS.
  const text = String(Object(error).message);
  if (!text.includes('no backend here serves getAsset')) throw error;
  console.log('no asset: no backend of this service serves DAS');
}
