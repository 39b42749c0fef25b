/** Spends account 1 of `total` credits through the store `at` until there are none, and prints how many. */
import { creditsFrom, joined, senderOf } from './stores.ts';

const [at = '', name = '', total = '0'] = process.argv.slice(2);
const store = await joined(at);
let charged = 0;
let seq = 0;

async function send(wanted: number) {
  const part = { total: Number(total), charged, wanted, needed: Math.min(1, wanted) };
  return creditsFrom(store, senderOf(`spending-${name}`, ++seq), part);
}

for (let isOver = false; !isOver;) {
  const grant = await send(40);
  if (grant === undefined) continue;
  charged += grant.allowance;
  // Others may hold some still; they spend what they hold or return it.
  isOver = grant.allowance === 0 && grant.available === 0 && grant.heldByOthers === 0;
}
while ((await send(0)) === undefined) await Bun.sleep(1);
await store.close();
console.log(charged);
process.exit(0);
