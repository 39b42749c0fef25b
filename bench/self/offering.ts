import { join } from 'node:path';
import { systemClock } from '../../shared/clock.ts';
import { ROOT } from '../../test/started/process.ts';
import { type Answers, answersFrom } from './answers.ts';
import type { Offer } from './offer.ts';

/** A load generator has started and connected by then, unless the machine is busy. */
const SOON_MS = 800;

/** The instant, on the wall clock, at which a load that is started now may send its first request. */
export function soonMs(): number {
  return systemClock.now() + SOON_MS;
}

/** Resolves at an instant of the wall clock, or when `signal` aborts. */
export function at(wallMs: number, signal: AbortSignal): Promise<void> {
  return systemClock.sleep(Math.max(0, wallMs - systemClock.now()), signal);
}

const LATE_MS = 30_000;

/** Runs the load generator in a process of its own; gives all answers when it has ended. */
export async function offering(offer: Offer, signal: AbortSignal): Promise<Answers> {
  const child = Bun.spawn([process.execPath, join(ROOT, 'bench/self/offer.ts'), JSON.stringify(offer)], {
    stdin: 'pipe',
    stdout: 'pipe',
    signal,
    timeout: 1_000 * offer.seconds + LATE_MS,
  });
  const bytes = await child.stdout.bytes();
  if ((await child.exited) !== 0) throw new Error('the load generator failed');
  return answersFrom(new Float32Array(bytes.slice().buffer));
}
