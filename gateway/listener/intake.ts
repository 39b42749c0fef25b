/** A connection of which nothing is read for some turns of the event loop. */
type UploadingConnection = { isStopped: boolean };

/**
 * Bounds the bytes that are read of callers in one turn, over all connections of a listener: a megabyte takes one or two milliseconds to become
 * a body. Left alone the runtime reads, in one turn, all that has come over all of them.
 */
export const TURN_BYTES = 1_048_576;
/** Reads of fewer bytes are requests that cost more by themselves. */
const COUNTED_BYTES_MIN = 16_384;
/** So many are stopped beside those that were read, and so many of all read again in each turn: either takes a microsecond. */
const STOPPED_MAX = 2_048;
const AGAIN_MAX = 32;

/** Has what callers send read in turns. */
export class Intake {
  readonly #connections: ReadonlySet<UploadingConnection>;
  /** Those that are stopped, in the order in which they are read again. */
  #stopped: UploadingConnection[] = [];
  /** Those that are read again since this turn began. */
  #again: UploadingConnection[] = [];
  /** The bytes of this turn, and of whom they were read. */
  #bytes = 0;
  readonly #readers = new Set<UploadingConnection>();
  #isScheduled = false;

  /** `connections`: all of a listener. */
  constructor(connections: ReadonlySet<UploadingConnection>) {
    this.#connections = connections;
  }

  /** So much was read of a connection, or is copied of what was. When it is enough, all are stopped. */
  took(connection: UploadingConnection, bytes: number): void {
    if (bytes < COUNTED_BYTES_MIN) return;
    this.#bytes += bytes;
    this.#readers.add(connection);
    this.#schedule();
    if (this.#bytes >= TURN_BYTES) this.#stopAll();
  }

  /**
   * Who was not read yet comes first, so that small requests do not wait for long ones of others. Who was, or was to be, is
   * always stopped: else those above the number would be read in every turn, and nobody behind them.
   */
  #stopAll(): void {
    const [again, first, last]: [UploadingConnection[], UploadingConnection[], UploadingConnection[]] = [
      [],
      [],
      [],
    ];
    for (const each of this.#readers) stop(each, last);
    for (const each of this.#connections) {
      if (first.length + this.#stopped.length >= STOPPED_MAX) break;
      stop(each, first);
    }
    for (const each of this.#again) stop(each, again);
    this.#stopped = [...again, ...first, ...this.#stopped, ...last];
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => this.#endTurn());
  }

  #endTurn(): void {
    this.#isScheduled = false;
    this.#bytes = 0;
    this.#readers.clear();
    this.#again = this.#stopped.splice(0, AGAIN_MAX);
    for (const each of this.#again) each.isStopped = false;
    if (this.#stopped.length > 0) this.#schedule();
  }
}

function stop(connection: UploadingConnection, queue: UploadingConnection[]): void {
  if (connection.isStopped) return;
  connection.isStopped = true;
  queue.push(connection);
}
