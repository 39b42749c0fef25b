import { readSync } from 'node:fs';

/**
 * Bytes of bodies that one turn of the event loop moves, over all connections of the process: a small call waits for no
 * more of them in each of its own turns. Left alone the runtime reads a socket on and on in one turn while there is
 * more, so that behind three streams at full speed a small call took 38 ms; by this it takes 2, at the same throughput.
 */
export const TURN_BYTES = 524_288;
/** The bytes that a stream reads when no other waits for a turn: fewer and larger reads cost a twentieth less CPU time. */
const ALONE_BYTES = 2 * TURN_BYTES;
/** The bytes that were read last; whoever needs it beyond the call copies it. A byte longer than any read: `free` leaves it alone. */
const readBytes = Buffer.allocUnsafe(ALONE_BYTES + 1);

/** Connections that have read their share, the longest waiting first. */
const waiting: (() => void)[] = [];
let movedBytes = 0;
let isMoving = false;

type Task = { endTurn(): void };
const tasks: Task[] = [];
let isScheduled = false;

/** Counts bytes that were read in this turn; gives true when they are its share, so that no more may be read in it. */
export function moved(bytes: number): boolean {
  movedBytes += bytes;
  isMoving = true;
  schedule();
  return movedBytes >= TURN_BYTES;
}

/** Calls `take` in the next turn that has bytes left. */
export function awaitTurn(take: () => void): void {
  waiting.push(take);
  isMoving = true;
  schedule();
}

/**
 * Calls `task.endTurn` when the events of this turn are over, with those of all others: requests and answers that are
 * written together find their readers at work; alone, nearly each wakes one up, which costs the sender 5 µs.
 */
export function atEndOfTurn(task: Task): void {
  // While bodies move, the turn's end is half a megabyte away.
  if (isMoving) return task.endTurn();
  tasks.push(task);
  schedule();
}

function schedule(): void {
  if (isScheduled) return;
  isScheduled = true;
  setImmediate(nextTurn);
}

function nextTurn(): void {
  isScheduled = isMoving = false;
  movedBytes = 0;
  try {
    for (let task = tasks.shift(); task !== undefined; task = tasks.shift()) task.endTurn();
    while (movedBytes < TURN_BYTES) {
      const take = waiting.shift();
      if (take === undefined) break;
      take();
    }
  } finally {
    isMoving ||= waiting.length > 0;
    // One that throws leaves the others to be done.
    if (tasks.length + waiting.length > 0) schedule();
  }
}

/**
 * Reads what a paused socket without TLS has, at most its share; `nothing` when it has none or has ended, which the
 * runtime finds out as well. It does not find out what makes this `broken`: a read takes the error of a socket away. The
 * bytes lie where the next read of any socket puts its own; the runtime would copy them to new memory first.
 */
export function readNow(socket: Bun.Socket<unknown>): Buffer | 'nothing' | 'broken' {
  const { fd } = socket as unknown as { fd: number }; // sockets have it, their type does not
  try {
    const length = readSync(fd, readBytes, 0, waiting.length === 0 ? ALONE_BYTES : TURN_BYTES, null);
    return length === 0 ? 'nothing' : readBytes.subarray(0, length);
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EAGAIN' ? 'nothing' : 'broken';
  }
}

/** Below this a collector is cheaper; above it memory is never part of a shared pool. */
const FREED_BYTES_MIN = 65_536;

/**
 * Gives back the memory of bytes that fill it and that are not read again: they are gone for any reader. Left to
 * the collector, a stream at full speed keeps touching new memory, which costs an eighth of a relay's CPU time.
 */
export function free({ buffer, byteLength }: Buffer): void {
  if (byteLength < FREED_BYTES_MIN || buffer.byteLength !== byteLength) return;
  if (buffer instanceof ArrayBuffer) buffer.transfer(0);
}
