import { parseArgs } from 'node:util';
import * as calls from './calls.ts';
import { summaryOf } from './episodes.ts';
import * as http from './http.ts';
import * as listener from './listener.ts';

const HELP = `Usage: bun test/fuzz/main.ts http | listener | calls [OPTIONS]

The episodes of test/fuzz/README.md for as long as is wanted. Ends with 1 at the first finding, which names its seed.

  --seconds S   how long (600)
  --seed N      the first episode (1): one is the same whenever its seed is, up to the timing of the machine
  --part PART   of calls: ${calls.PARTS.join(', ')} (all)`;

const { values, positionals } = parseArgs({
  args: process.argv.slice(2),
  allowPositionals: true,
  options: {
    seconds: { type: 'string', default: '600' },
    seed: { type: 'string', default: '1' },
    part: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});
const parts = calls.PARTS.filter((part) => (values.part ?? part) === part);
const FUZZES: Readonly<Record<string, typeof http.fuzz>> = {
  http: http.fuzz,
  listener: listener.fuzz,
  calls: (...how) => calls.fuzz(parts, ...how),
};
const fuzz = FUZZES[positionals[0] ?? ''];
const [seconds, seed] = [Number(values.seconds), Number(values.seed)];
if (values.help || fuzz === undefined || parts.length === 0 || !(seconds > 0) || !Number.isInteger(seed)) {
  console.error(HELP);
  process.exit(values.help ? 0 : 2);
}
const end = new AbortController();
process.once('SIGINT', () => end.abort());
process.once('SIGTERM', () => end.abort());
const progress = (line: string) => void (process.stderr.isTTY && process.stderr.write(`\r\x1b[K${line}`));
const found = await fuzz(seed, seconds, progress, end.signal);
progress('');
console.log(summaryOf(seed, found));
const finding = found.finding ?? found.heldUp;
console.log(finding === undefined ? 'no finding' : `FINDING ${finding}`);
process.exit(finding === undefined ? 0 : 1);
