import { Structure } from '../gateway/json/structure.ts';
import { systemClock } from '../shared/clock.ts';
import { programAccounts } from './program-accounts.ts';
import { runBench, tableOf } from './report.ts';
import { spread } from './statistics.ts';

const LIMIT_MS = 60_000;
const ANSWER_BYTES = 50_000_000;
const READ_BYTES = 524_288;
const ROUNDS = 9;

const ANSWERS: Readonly<Record<string, () => Buffer>> = {
  'accounts of a scan': accounts,
  'the same, indented': () => filledWith('\n  {\n    "lamports": 2039280,\n    "executable": false\n  },'),
  transactions: () => filledWith(`{"meta":${TRANSACTION_META},"transaction":${TRANSACTION}},`),
  'program logs with quotes': () =>
    filledWith(`"Program log: {\\"amount\\":\\"2039280\\"} ${'x'.repeat(80)}",`),
  'short arrays': () => filledWith('[1,2],[3],'),
  'nothing but escapes': () => filledWith('"\\"\\\\\\"\\\\\\"\\\\\\"\\\\\\"\\\\\\"\\\\",'),
};
const TRANSACTION_META =
  '{"err":null,"fee":5000,"logMessages":["Program 11111111111111111111111111111111 invoke [1]",' +
  '"Program 11111111111111111111111111111111 success"],"preBalances":[49902035000,1,1],"status":{"Ok":null}}';
const TRANSACTION =
  '{"message":{"accountKeys":["TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA","11111111111111111111111111111111"],' +
  '"instructions":[{"accounts":[0,1,2],"data":"3Bxs4h24hBtQy9rw","programIdIndex":5,"stackHeight":null}]}}';

if (import.meta.main) process.exit(await runBench(import.meta.path, LIMIT_MS, measure));

async function measure(signal: AbortSignal): Promise<void> {
  const rows = [['answer', 'MB/s', 'MB/s without vectors']];
  for (const [name, answer] of Object.entries(ANSWERS)) {
    const bytes = answer();
    const [withBlocks, without]: [number[], number[]] = [[], []];
    for (let i = 0; i <= ROUNDS; i++) {
      await systemClock.sleep(0, signal); // so that Ctrl-C is seen
      signal.throwIfAborted();
      const figures = [rateOf(bytes), rateOf(bytes, null)] as const;
      if (i === 0) continue; // it warms up
      withBlocks.push(figures[0]);
      without.push(figures[1]);
    }
    rows.push([name, spread(withBlocks), spread(without)]);
  }
  console.log(tableOf(rows));
  console.log(
    `\n${ROUNDS} times ${ANSWER_BYTES / 1e6} MB in reads of 512 KiB, on one core: median (lowest-highest).`,
  );
}

/** MB/s of following a whole answer. */
function rateOf(bytes: Buffer, blocks?: null): number {
  const structure = new Structure();
  const startedMs = systemClock.monotonic();
  for (let at = 0; at < bytes.length; at += READ_BYTES)
    structure.push(bytes.subarray(at, at + READ_BYTES), blocks);
  const seconds = (systemClock.monotonic() - startedMs) / 1_000;
  if (!structure.isComplete) throw new Error('the answer was not followed to its end');
  return bytes.length / 1e6 / seconds;
}

function accounts(): Buffer {
  const [, ...parts] = programAccounts(ANSWER_BYTES, '1', 'length');
  return Buffer.concat(parts);
}

function filledWith(element: string): Buffer {
  const times = Math.ceil(ANSWER_BYTES / element.length);
  return Buffer.from(`{"jsonrpc":"2.0","result":{"all":[${element.repeat(times)}null]},"id":1}\n`);
}
