/** Something that has work which its caller has sent ahead. */
type Worker = Readonly<{
  /** Does a bounded piece of it; gives what it cost: 1 for a request, and 1 for each kilobyte that was walked. */
  workOn(): number;
}>;

/**
 * What one turn of the event loop does of such work, over all connections of the process. A request that is refused takes
 * some 10 µs, and a kilobyte of chunks of one byte 20: a turn is a millisecond or two, and some more before it is compiled, however many connections send ahead.
 */
export const TURN_COST = 64;

const waiting: Worker[] = [];
let left = TURN_COST;
let isWorking = false;
let isScheduled = false;

/** Calls `worker.workOn` behind those that wait already, in this turn or a later one: connections take turns. */
export function awaitWork(worker: Worker): void {
  waiting.push(worker);
  work();
}

function work(): void {
  if (isWorking) return;
  isWorking = true;
  try {
    while (left > 0) {
      const worker = waiting.shift();
      if (worker === undefined) break;
      left -= worker.workOn();
    }
  } finally {
    isWorking = false;
    if (!isScheduled) setImmediate(nextTurn);
    isScheduled = true;
  }
}

function nextTurn(): void {
  isScheduled = false;
  left = TURN_COST;
  if (waiting.length > 0) work();
}
