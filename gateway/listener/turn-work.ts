/** A connection whose caller has sent something ahead. */
type Connection = Readonly<{
  /** Does a bounded piece of it; gives what it cost: 1 for a request, and 1 for each kilobyte that was walked. */
  workOn(): number;
}>;

/** What a connection does before the next one has its share: answers that are written together cost half of what they cost alone. */
const SHARE_COST = 16;
const SHARES_A_TURN = 6;
/**
 * What one turn of the event loop does of such work, over all connections of the process. A request that is refused takes
 * some 10 µs, and a kilobyte of chunks of one byte 20: a turn is one or two milliseconds, however many connections send ahead.
 */
export const TURN_COST = SHARES_A_TURN * SHARE_COST;

const waiting: Connection[] = [];
/** Shares that wait for their place in the loop, and those that this turn has still. */
let scheduled = 0;
let sharesLeft = SHARES_A_TURN;
/** Who has its share now, what is left of it, and whether there is more to do for it. */
let current: Connection | undefined;
let left = 0;
let isAgain = false;
let isWorking = false;

/** Calls `connection.workOn` in its share, which goes on, begins now, or comes behind those of all others that wait. */
export function awaitWork(connection: Connection): void {
  if (connection === current && left > 0) {
    isAgain = true;
    if (!isWorking) work(connection);
  } else if (waiting.length === 0 && sharesLeft > 0 && !isWorking) begin(connection);
  else {
    waiting.push(connection);
    schedule();
  }
}

function begin(connection: Connection): void {
  if (sharesLeft-- === SHARES_A_TURN) setImmediate(() => (sharesLeft = SHARES_A_TURN));
  current = connection;
  left = SHARE_COST;
  isAgain = true;
  work(connection);
}

function work(connection: Connection): void {
  isWorking = true;
  try {
    while (isAgain && left > 0) {
      isAgain = false;
      left -= connection.workOn();
    }
  } finally {
    isWorking = false;
    if (isAgain) waiting.push(connection);
    isAgain = false;
    schedule();
  }
}

/** Each share begins by itself, so that answers which come a few promises later still fall into it. */
function schedule(): void {
  for (; scheduled < SHARES_A_TURN && scheduled < waiting.length; scheduled++) setImmediate(nextShare);
}

function nextShare(): void {
  scheduled--;
  if (sharesLeft === 0) return schedule();
  const connection = waiting.shift();
  if (connection !== undefined) begin(connection);
}
