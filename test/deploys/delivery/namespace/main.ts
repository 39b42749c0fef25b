import { internetPolicy } from '../../../../deploys/delivery/policy.ts';
import { createSender } from '../../../../deploys/delivery/send.ts';
import { systemClock } from '../../../../shared/clock.ts';

/** The product's sender with nothing around it: posts to each URL of the arguments, and prints how each ended, as JSON. */
const send = createSender(internetPolicy([]), systemClock);
const body = Buffer.from('{"event":"ping"}');
const sent = process.argv.slice(2).map(async (url) => {
  const end = await send({ url: new URL(url), headers: {}, body }, new AbortController().signal);
  return end.kind === 'failed' ? end.code : end.status;
});
console.log(JSON.stringify(await Promise.all(sent)));
