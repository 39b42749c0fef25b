import { appendFileSync } from 'node:fs';
import type { Send } from '../../../deploys/delivery/send.ts';
import { createWorker } from '../../../deploys/delivery/worker.ts';
import { createRecord } from '../../../deploys/outbox/record.ts';
import { DEPLOYS_MIGRATIONS } from '../../../deploys/schema.ts';
import { createReadings } from '../../../deploys/watch/readings.ts';
import { type Clock, systemClock } from '../../../shared/clock.ts';
import { Secret } from '../../../shared/secret.ts';
import { addressOf } from '../../fakes/chain.ts';
import { answered } from '../../fakes/scripted-send.ts';
import { opened } from '../../started/gateway.ts';
import { queueOver } from '../outbox/queue.ts';
import { quiet } from './working.ts';

/**
 * A watcher and a worker in a process that is made to be killed. It upgrades a program every few milliseconds, prints
 * the slot once it is stored, and writes every post to a file before it answers it: that file is the receiver. Its
 * wall clock is ahead by so much that leases and waits of the process before are over.
 */
const [database = '', receiver = '', aheadMs = '0'] = process.argv.slice(2);
const store = opened(database, DEPLOYS_MIGRATIONS);
store.run('PRAGMA synchronous = OFF'); // the system lives on, and the test is about the process
const { outbox, enqueue, times } = queueOver(store);
const record = createRecord(store, enqueue);
const clock: Clock = { ...systemClock, now: () => systemClock.now() + Number(aheadMs) };
const never = new AbortController().signal;
const program = addressOf('A');

const send: Send = async ({ headers, body }) => {
  const id = String(headers['X-Service-Delivery']);
  appendFileSync(receiver, `${id} ${Buffer.from(body).toString('base64')}\n`);
  await clock.sleep(Math.random() * 6, never);
  return answered(Math.random() < 0.7 ? 200 : 500, 'x'.repeat(Math.floor(Math.random() * 16_384)));
};
const fail = (error: unknown) => {
  console.error(error);
  process.exit(1);
};
const worker = createWorker({
  outbox,
  send,
  clock,
  ...quiet(fail),
  secretsOf: () => ({ current: new Secret('whsec_of_the_storm'), next: undefined }),
});
void worker.run(never);

for (let slot = createReadings(store).deploySlots().get(program) ?? 1n; ;) {
  const [previousSlot, deploySlot] = [slot, slot + 1n];
  const programs = new Map([[program, { status: 'frozen', deploySlot } as const]]);
  const latest = { reading: { contextSlot: deploySlot, programs }, checkedAtMs: clock.now() };
  record(latest, [{ program, previousSlot, deploySlot }], undefined, clock.now());
  console.log(String(deploySlot));
  await clock.sleep(Math.random() * 4, never);
  times.save(deploySlot, 1_700_000_000 + Number(deploySlot));
  worker.wake();
  await clock.sleep(Math.random() * 4, never);
  slot = deploySlot;
}
