/** Who holds memory: an account by its number, or all callers together whose key is looked up, or who have no valid one. */
export type Holder = number | 'unknown' | 'keyless';

/** From now on so much is held, as this holder's; false, and nothing is, where there is no room for it. */
export type Share = (holder: Holder, bytes: number) => boolean;

/** The part of all that callers without a valid key may hold together. */
const KEYLESS_PART = 1 / 8;
/** An account holds at most so many times what it leaves free: alone three quarters of all, and there is room for another one. */
const TIMES_FREE = 3;

/**
 * The memory of request bodies under way in this process, from their first byte to the end of their request. Bodies that
 * come whole with their head and are short are not counted: they cost no more than the connection that they came on.
 */
export class BodyBudget {
  readonly #bytesMax: number;
  readonly #byHolder = new Map<Holder, number>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** A part of it, which is empty at first. */
  share(): Share {
    let [holder, held]: [Holder, number] = ['unknown', 0];
    return (next, bytes) => {
      if (bytes === held && (bytes === 0 || next === holder)) return true;
      if (held > 0) this.#giveBack(holder, held);
      [holder, held] = [next, bytes > 0 && !this.#take(next, bytes) ? 0 : bytes];
      return held === bytes;
    };
  }

  #take(holder: Holder, bytes: number): boolean {
    const held = (this.#byHolder.get(holder) ?? 0) + bytes;
    const free = this.#bytesMax - this.#bytes - bytes;
    if (held > TIMES_FREE * free) return false;
    if (holder === 'keyless' && held > this.#bytesMax * KEYLESS_PART) return false;
    this.#byHolder.set(holder, held);
    this.#bytes += bytes;
    return true;
  }

  #giveBack(holder: Holder, bytes: number): void {
    const left = (this.#byHolder.get(holder) ?? 0) - bytes;
    if (left > 0) this.#byHolder.set(holder, left);
    else this.#byHolder.delete(holder);
    this.#bytes -= bytes;
  }
}
