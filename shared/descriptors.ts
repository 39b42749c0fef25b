import { closeSync, openSync, readFileSync } from 'node:fs';
import { codeOf } from './store/private.ts';

/** File descriptors that this process may have; infinite where the system does not say (it does on Linux). */
export function descriptorsMax(): number {
  try {
    return Number(/^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? Infinity);
  } catch {
    return Infinity;
  }
}

/**
 * About how many descriptors this process has in use, for the price of opening one: the system gives out the lowest that
 * is free. `undefined`: there is none left, here or in the whole system.
 */
export function descriptorsInUse(): number | undefined {
  try {
    const lowest = openSync('/dev/null', 'r');
    closeSync(lowest);
    return lowest;
  } catch (error) {
    return ['EMFILE', 'ENFILE'].includes(codeOf(error)) ? undefined : 0;
  }
}

/** The part of them above which they are short. */
const SHORT = 0.9;

/** What is wrong with the descriptors, as a clause with its cause; `stops`: nothing can be opened. `undefined`: nothing is. */
export function descriptorTrouble(max: number) {
  const used = descriptorsInUse();
  if (used === undefined)
    return { what: 'no file descriptor is left', cause: `ulimit -n is ${max}`, stops: true };
  if (used < SHORT * max) return undefined;
  return { what: 'file descriptors are short', cause: `about ${used} of ${max} are in use`, stops: false };
}
