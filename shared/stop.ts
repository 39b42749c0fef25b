/**
 * An AbortSignal that fires when the process is asked to stop: SIGINT, SIGTERM, or, when `supervised`, the end of
 * its standard input, which is how a child learns that its parent died, even by SIGKILL. A second SIGINT ends the
 * process at once with 130.
 */
export function stopSignal(supervised: boolean): AbortSignal {
  const controller = new AbortController();
  const stop = (reason: string) => controller.abort(reason);
  process.on('SIGTERM', () => stop('SIGTERM'));
  process.on('SIGINT', () => {
    if (controller.signal.reason === 'SIGINT') process.exit(130);
    stop('SIGINT');
  });
  if (supervised) {
    process.stdin.on('end', () => stop('the parent ended'));
    process.stdin.on('error', () => stop('the parent ended'));
    process.stdin.resume();
  }
  return controller.signal;
}

/** Resolves when `signal` fires, or at once when it has. */
export function fired(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}
