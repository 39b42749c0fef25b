import { createWorker } from '../../../deploys/delivery/worker.ts';
import { DEPLOYS_MIGRATIONS } from '../../../deploys/schema.ts';
import { systemClock as clock } from '../../../shared/clock.ts';
import { fired, stopSignal } from '../../../shared/process.ts';
import { Secret } from '../../../shared/secret.ts';
import { answered } from '../../fakes/scripted-send.ts';
import { opened } from '../../started/gateway.ts';
import { queueOver } from '../outbox/queue.ts';
import { quiet } from './working.ts';

/** A worker in a process of its own, over the database named. It prints a line for each post, which is answered once the process is asked to stop. */
const stop = stopSignal(false);
const store = opened(process.argv[2] ?? '', DEPLOYS_MIGRATIONS);
const fail = (error: unknown) => {
  console.error(error);
  process.exit(1);
};
const worker = createWorker({
  outbox: queueOver(store).outbox,
  clock,
  send: async () => {
    console.log('sent');
    await fired(stop);
    await clock.sleep(1, new AbortController().signal); // the worker has heard of the stop
    return answered(200);
  },
  secretsOf: () => ({ current: new Secret('whsec_of_the_child'), next: undefined }),
  ...quiet(fail),
});
await worker.run(stop);
store.close();
