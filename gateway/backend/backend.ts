import type { BackendConfig } from '../../shared/config/backends.ts';
import type { Clock } from '../../shared/clock.ts';
import type { HttpClient } from '../http/client.ts';
import { numberOf } from '../pool/preference.ts';
import { type Standing, WELL } from '../pool/standing-state.ts';
import { createRecent, type Recent } from './recent.ts';
import { createTurns, type Turns } from './turns.ts';
import { createView, type View } from './view.ts';

/**
 * One backend and what this process knows of it. A class because it has an identity and changes: calls enter
 * and leave it, a failure puts it behind the others for a while, and probes tell how it stands.
 */
export class Backend {
  readonly config: BackendConfig;
  readonly client: HttpClient;
  readonly view: View = createView();
  /** Its number among the choices of an account (`preference`). */
  readonly number: number;
  /** Calls that wait for a place here. */
  readonly turns: Turns = createTurns();
  /** What became of its calls lately. */
  readonly recent: Recent = createRecent();
  /** What the probes say of it. */
  standing: Standing = WELL;
  #inFlight = 0;
  #failures = 0;
  #failedUntilMs = 0;
  #onTrial = false;
  #trialSinceMs: number | undefined;

  constructor(config: BackendConfig, client: HttpClient) {
    this.config = config;
    this.client = client;
    this.number = numberOf(config.name);
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /** Whether another call may enter. */
  get hasRoom(): boolean {
    return this.#inFlight < this.config.connectionsMax;
  }

  /** Counts a call in, to the last byte of its answer; the returned function counts it out, once. */
  enter(): () => void {
    this.#inFlight++;
    // The first call after a penalty finds out whether it is well again; until then the others keep away.
    if (this.#failures > 0) this.#onTrial = true;
    let inside = true;
    return () => {
      if (!inside) return;
      inside = false;
      this.#inFlight--;
      if (this.hasRoom) this.turns.next()?.take();
    };
  }

  /**
   * Puts it behind the other backends: a dead host should cost one call now and then, not every call. For a second at
   * first, twice as long each time it fails again, at most `PENALTY_MS_MAX`.
   */
  markFailed(clock: Clock): void {
    const nowMs = clock.monotonic();
    this.recent.failed();
    this.endTrial();
    if (nowMs < this.#failedUntilMs) return; // calls that were under way with the first one
    this.#failedUntilMs = nowMs + Math.min(PENALTY_MS_MAX, PENALTY_MS * 2 ** this.#failures);
    this.#failures++;
  }

  /** An answer began: it is as good as any other again. */
  markWell(): void {
    this.recent.answered();
    this.#failures = 0;
    this.#failedUntilMs = 0;
    this.endTrial();
  }

  /** The call that was to find out ended without telling: its caller left, or the answer was no failure of its. */
  endTrial(): void {
    this.#onTrial = false;
    this.#trialSinceMs = undefined;
  }

  isFailing(clock: Clock): boolean {
    const nowMs = clock.monotonic();
    if (!this.#onTrial) return nowMs < this.#failedUntilMs;
    this.#trialSinceMs ??= nowMs;
    return nowMs - this.#trialSinceMs < TRIAL_MS;
  }
}

/** A trial that takes longer is a slow call, and says nothing; the others need not wait for it. */
const TRIAL_MS = 3_000;
const PENALTY_MS = 1_000;
const PENALTY_MS_MAX = 16_000;
