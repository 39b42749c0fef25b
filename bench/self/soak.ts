import { parseArgs } from 'node:util';
import { runBench, tableOf } from './report.ts';
import { scenarios } from './soak/scenarios.ts';

/** Longer than all of them together. */
const LIMIT_MS = 60 * 60_000;
const SECONDS = 30;

const USAGE =
  'bun run soak [--only WORDS,…] [--seconds N]\n  --only     scenarios whose names have one of the words\n  --seconds  length of each load, from 12 to 600; 30 when absent\n';

if (import.meta.main) process.exit(await main(process.argv.slice(2)));

async function main(argv: readonly string[]): Promise<number> {
  const asked = readArguments(argv);
  if (asked === undefined) {
    process.stderr.write(USAGE);
    return 2;
  }
  const wanted = scenarios(asked.seconds).filter(({ name }) =>
    asked.only.some((word) => name.includes(word)),
  );
  let breaches = 0;
  const code = await runBench('bench/self/soak.ts', LIMIT_MS, async (signal) => {
    for (const { name, run } of wanted) {
      if (signal.aborted) return;
      const rows = await run(signal).catch((error: unknown) => [
        { what: String(error), bounds: '', measured: '', holds: false },
      ]);
      // One that was stopped shows nothing.
      if (signal.aborted) return;
      breaches += rows.filter(({ holds }) => !holds).length;
      const table = rows.map(({ what, bounds, measured, holds }) => [
        what,
        bounds,
        measured,
        bounds === '' && holds ? '' : holds ? 'holds' : 'BREACH',
      ]);
      console.log(`${tableOf([[name, 'bounds', 'measured', 'verdict'], ...table])}\n`);
    }
  });
  console.log(`${wanted.length} scenarios, ${breaches} breaches`);
  return breaches > 0 || wanted.length === 0 ? 1 : code;
}

function readArguments(
  argv: readonly string[],
): Readonly<{ only: readonly string[]; seconds: number }> | undefined {
  try {
    const options = { only: { type: 'string' }, seconds: { type: 'string' } } as const; // parseArgs reads the literal types
    const { values } = parseArgs({ args: [...argv], options });
    const seconds = Number(values.seconds ?? SECONDS);
    if (!Number.isInteger(seconds) || seconds < 12 || seconds > 600) return undefined;
    return { only: (values.only ?? '').split(','), seconds };
  } catch {
    return undefined;
  }
}
