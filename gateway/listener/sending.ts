/** What waits for an answer to be sent: the permits of its account, which are held as long as it may be in memory. */
export class Sending {
  #isSent = false;
  #then: (() => void) | undefined;

  /** Calls `then` when the answer has been sent, at once if it has. */
  onSent(then: () => void): void {
    if (this.#isSent) return then();
    const before = this.#then;
    this.#then = before === undefined ? then : () => (before(), then());
  }

  /** Whether anything waits for it. */
  get isAwaited(): boolean {
    return this.#then !== undefined;
  }

  /** The last byte has been handed to the system, or nobody reads the answer any more. */
  sent(): void {
    const then = this.#then;
    this.#isSent = true;
    this.#then = undefined;
    then?.();
  }
}
