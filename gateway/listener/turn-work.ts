/** A connection whose caller has sent something ahead. */
type WorkingConnection = Readonly<{
  /** Does a bounded piece of it; gives what it cost: 1 for a request, and 1 for each kilobyte that was walked. */
  workOn(): number;
}>;

/** The work of a connection before the next one has its share: answers that are written together cost half of what they cost alone. */
const SHARE_COST = 16;
/**
 * The work of one turn of the event loop, over all connections of the process. A request that is refused takes
 * some 10 µs, and a kilobyte of chunks of one byte 20: a turn is one or two milliseconds, however many connections send ahead.
 */
export const TURN_COST = 96;
/** Shares that wait for their place in one turn: most connections have one request for it. */
const SHARES_MAX = 64;

const waiting: WorkingConnection[] = [];
/** Shares that wait for their place in the loop. */
let scheduled = 0;
/** The rest of this turn. */
let turnLeft = TURN_COST;
/** Who has its share now, what is left of it, and whether there is more to do for it. */
let current: WorkingConnection | undefined;
let left = 0;
let isAgain = false;
let isWorking = false;

/** Calls `connection.workOn` in its share, which goes on, begins now, or comes behind those of all others that wait. */
export function awaitWork(connection: WorkingConnection): void {
  if (connection === current && left > 0) {
    isAgain = true;
    if (!isWorking) work(connection);
  } else if (waiting.length === 0 && turnLeft > 0 && !isWorking) begin(connection);
  else {
    waiting.push(connection);
    schedule();
  }
}

function begin(connection: WorkingConnection): void {
  current = connection;
  left = SHARE_COST;
  isAgain = true;
  work(connection);
}

function endTurn(): void {
  turnLeft = TURN_COST;
}

function work(connection: WorkingConnection): void {
  isWorking = true;
  try {
    while (isAgain && left > 0) {
      isAgain = false;
      if (turnLeft === TURN_COST) setImmediate(endTurn);
      const cost = connection.workOn();
      left -= cost;
      turnLeft -= cost;
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
  for (; scheduled < SHARES_MAX && scheduled < waiting.length; scheduled++) setImmediate(nextShare);
}

function nextShare(): void {
  scheduled--;
  if (turnLeft <= 0) return schedule();
  const connection = waiting.shift();
  if (connection !== undefined) begin(connection);
}
