import { internetPolicy } from '../../../../deploys/delivery/policy.ts';
import { createSender, signatureOf } from '../../../../deploys/delivery/send.ts';
import { systemClock } from '../../../../shared/clock.ts';
import { Secret } from '../../../../shared/secret.ts';

/**
 * The product's sender with nothing around it: posts one body to each URL of the arguments, all at once, or one after
 * the other behind `--in-turn`, and prints how each ended, as JSON.
 */
const [mode, ...rest] = process.argv.slice(2);
const urls = (mode === '--in-turn' ? rest : [mode ?? '', ...rest]).map((text) => new URL(text));
const send = createSender(internetPolicy([]), systemClock);
const body = Buffer.from('{"event":"ping"}');

async function post(url: URL) {
  const seconds = Math.floor(systemClock.now() / 1_000);
  const headers = {
    'X-Service-Timestamp': String(seconds),
    'X-Service-Signature': signatureOf(new Secret('whsec_namespace'), seconds, body),
  };
  const sent = await send({ url, headers, body }, new AbortController().signal);
  if (sent.kind === 'failed') return { how: sent.code, detail: sent.detail };
  return { how: `${sent.status}`, detail: sent.remoteAddress };
}

const results: Awaited<ReturnType<typeof post>>[] = [];
if (mode === '--in-turn') for (const url of urls) results.push(await post(url));
else results.push(...(await Promise.all(urls.map(post))));
console.log(JSON.stringify(results));
