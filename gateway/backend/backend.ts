import type { BackendConfig } from '../../shared/config/backends.ts';
import type { Clock } from '../../shared/clock.ts';
import type { HttpClient } from '../http/client.ts';
import { createView, type View } from './view.ts';

/**
 * One backend and what this process knows of it. A class because it has an identity and changes: calls enter
 * and leave it, and a failure puts it behind the others for a moment.
 */
export class Backend {
  readonly config: BackendConfig;
  readonly client: HttpClient;
  readonly view: View = createView();
  #inFlight = 0;
  #failedUntilMs = 0;
  #left = Promise.withResolvers<void>();

  constructor(config: BackendConfig, client: HttpClient) {
    this.config = config;
    this.client = client;
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
    let inside = true;
    return () => {
      if (!inside) return;
      inside = false;
      this.#inFlight--;
      this.#left.resolve();
      this.#left = Promise.withResolvers();
    };
  }

  /** Resolves when the next call leaves. */
  get nextLeft(): Promise<void> {
    return this.#left.promise;
  }

  /** Puts it behind the other backends for `PENALTY_MS`: a dead host should cost one call a second, not every call. */
  markFailed(clock: Clock): void {
    this.#failedUntilMs = clock.monotonic() + PENALTY_MS;
  }

  isFailing(clock: Clock): boolean {
    return clock.monotonic() < this.#failedUntilMs;
  }
}

const PENALTY_MS = 1_000;

/** The backends that take a body of this length, in their configured order, those that failed a moment ago last. */
export function inOrder(backends: readonly Backend[], bodyBytes: number, clock: Clock): readonly Backend[] {
  const able = backends.filter(({ config }) => bodyBytes <= (config.bodyBytesMax ?? Infinity));
  if (!able.some((backend) => backend.isFailing(clock))) return able;
  return able.toSorted((a, b) => Number(a.isFailing(clock)) - Number(b.isFailing(clock)));
}
