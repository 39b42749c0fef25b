import manifest from '../package.json';

/** The one Bun this project is built and tested on; `package.json` `engines.bun` is the only place that says it. */
export const BUN_VERSION: string = manifest.engines.bun;

/**
 * One sentence for the user when `running` is older than `wanted`, else `undefined`.
 * Older releases cut streams silently and buffer whole answers, so there is no degraded mode.
 */
export function bunComplaint(running: string | undefined, wanted: string = BUN_VERSION): string | undefined {
  if (running === undefined)
    return `Sluice needs Bun ${wanted} or newer; run it with: npx -y bun@${wanted} start`;
  if (!isOlder(running, wanted)) return undefined;
  return `Sluice needs Bun ${wanted} or newer, and this is Bun ${running}; run it with: npx -y bun@${wanted} start`;
}

function isOlder(running: string, wanted: string): boolean {
  const [have, want] = [numbersOf(running), numbersOf(wanted)];
  for (let i = 0; i < want.length; i++) {
    const difference = (have[i] ?? 0) - (want[i] ?? 0);
    if (difference !== 0) return difference < 0;
  }
  return false;
}

function numbersOf(version: string): number[] {
  return version
    .replace(/[-+].*$/, '')
    .split('.')
    .map(Number);
}
