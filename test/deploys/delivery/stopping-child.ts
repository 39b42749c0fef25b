import { createWorker } from '../../../deploys/delivery/worker.ts';
import { DEPLOYS_MIGRATIONS } from '../../../deploys/schema.ts';
import { systemClock as clock } from '../../../shared/clock.ts';
import { Secret } from '../../../shared/secret.ts';
import { stopSignal } from '../../../shared/process.ts';
import { answered } from '../../fakes/scripted-send.ts';
import { opened } from '../../started/gateway.ts';
import { queueOver } from '../outbox/queue.ts';
import { quiet } from './working.ts';

/** A worker in a process of its own, over the database named; it prints a line when a post is under way, which takes 300 ms. */
const stop = stopSignal(false);
const store = opened(process.argv[2] ?? '', DEPLOYS_MIGRATIONS);
const { outbox } = queueOver(store);
const fail = (error: unknown) => {
  console.error(error);
  process.exit(1);
};
const worker = createWorker({
  outbox,
  clock,
  send: async (_, signal) => {
    console.log('sent');
    await clock.sleep(300, signal);
    return answered(200);
  },
  secretsOf: () => ({ current: new Secret('whsec_of_the_child'), next: undefined }),
  ...quiet(fail),
});
await worker.run(stop);
store.close();
process.exit(0);
