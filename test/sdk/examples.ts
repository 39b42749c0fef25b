import { join } from 'node:path';
import { ASSETS } from '../fakes/das-assets.ts';
import { childEnv, ROOT } from '../started/process.ts';
import { startTiers } from './tiers.ts';

export const EXAMPLES = join(ROOT, 'examples');
const PAID = /^balance 2000000n?\n$/;
/** Every example in TypeScript, and what it prints. */
export const ENTRIES = [
  ['kit', PAID],
  ['web3', PAID],
  ['anchor', PAID],
  ['spl-token', PAID],
  ['umi', PAID],
  ['helius', /^slot \d+n\nasset Compressed\n$/],
  ['scan', /^accounts [1-9]\d*\n$/],
] as const;
const RUN_MS_MAX = 50_000;
/** Of a test, whose process waits for its turn. */
export const TEST_MS_MAX = 240_000;
/** Processes at once. More of them take the machine from the chain, which is given up when it answers nothing for two seconds. */
const TURNS = 3;
/** Slots at which a blockhash, which is good for 150 of them, outlives a process that waits for the machine. */
const SLOT_MS = 400;

/** What examples run against. */
export async function startExamples() {
  const tiers = await startTiers('', SLOT_MS);
  const turns = Array.from({ length: TURNS }, () => Promise.resolve<unknown>(undefined));
  let asked = 0;

  async function runNow(command: readonly string[], cwd: string, env: Readonly<Record<string, string>> = {}) {
    const own = { SLUICE_URL: tiers.url, SLUICE_KEY: tiers.key('scale'), ASSET: ASSETS[0]?.id ?? '' };
    const child = Bun.spawn([...command], {
      cwd,
      env: childEnv({ ...own, ...env }),
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
      timeout: RUN_MS_MAX,
    });
    const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    return stdout || stderr;
  }

  return {
    /** What a command prints, when the one before it in its turn has ended. */
    run(...command: Parameters<typeof runNow>): Promise<string> {
      const turn = asked++ % TURNS;
      const ran = Promise.resolve(turns[turn]).then(() => runNow(...command));
      turns[turn] = ran.catch(() => undefined);
      return ran;
    },
    [Symbol.asyncDispose]: () => tiers[Symbol.asyncDispose](),
  };
}
