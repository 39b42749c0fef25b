import { tableOfFindings } from './finding.ts';
import { type OwnBench, type OwnRun, runOwn } from './report.ts';
import { scenarios } from './soak/scenarios.ts';

/** Longer than all of them together. */
const LIMIT_MS = 60 * 60_000;
const SHORT_SECONDS = 4;

const BENCH: OwnBench = {
  path: import.meta.path,
  about: `Limits, credits and deliveries while something dies or does harm. Ends with 1 when a bound was broken. Twenty minutes.
Also as bun run soak. Scenarios: ${scenarios(0, false)
    .map(({ name }) => name)
    .join(', ')}.`,
  options: {
    only: { value: 'A,B', help: 'scenarios whose names have one of the words; all', preset: '' },
    seconds: { value: 'S', help: 'length of each load, 12 to 600', least: 12, most: 600, preset: 30 },
    form: {
      value: 'NAME',
      help: 'short: loads of seconds, bounds that a busy machine keeps',
      known: ['long', 'short'],
      preset: 'long',
    },
  },
  limitMs: () => LIMIT_MS,
  measure,
};

if (import.meta.main) process.exit(await runOwn(BENCH, process.argv.slice(2)));

async function measure({ signal, number, text, progress, table, say }: OwnRun): Promise<boolean> {
  const words = text('only').split(',');
  const isShort = text('form') === 'short';
  const wanted = scenarios(isShort ? SHORT_SECONDS : Math.floor(number('seconds')), isShort).filter(
    ({ name }) => words.some((word) => name.includes(word)),
  );
  let breaches = 0;
  for (const [i, { name, run }] of wanted.entries()) {
    progress(`${name}, ${i + 1} of ${wanted.length}`);
    const findings = await run(signal).catch((error: unknown) => [
      { what: String(error), bounds: '', measured: '', holds: false },
    ]);
    // One that was stopped shows nothing.
    if (signal.aborted) break;
    breaches += findings.filter(({ holds }) => !holds).length;
    table(tableOfFindings(name, findings));
    say('');
  }
  say(`${wanted.length} scenarios, ${breaches} breaches`);
  return breaches === 0 && wanted.length > 0;
}
