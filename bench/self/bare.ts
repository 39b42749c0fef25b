import { join } from 'node:path';
import { ROOT } from '../../test/started/process.ts';
import { keep, runCompared } from './compare.ts';
import { run, startChild, SUBJECT_CORE } from './compare/machine.ts';
import type { Options } from './compare/options.ts';
import { PEERS } from './compare/peers.ts';
import { keptOf, markdownOf } from './compare/results.ts';
import { type Case, createPool, prepareWorld, timeCases, type World } from './compare/rounds.ts';
import type { Scenario, Variant } from './compare/scenarios.ts';
import { checkoutOf, sluiceSubject } from './compare/sluice.ts';
import { spread } from './statistics.ts';

const HELP = `bun bench/self/bare.ts [--subjects A,B] [--rounds 7] [--seconds 2] [--priority 0] [--json FILE]

What the ways of a relay on Bun cost at least: prototypes in one interleaved run with nginx, nginx-lua and this
checkout, with the load, the backend and the options of bench/self/compare.

  constant       Bun.serve with a constant answer, the body unread
  body           the same, the body read
  fields         the same, with the fields of requests and answers that the gateway reads and sets
  relay          body, and a client on Bun.connect, one exchange a connection
  relay-fields   fields and relay: every request and answer is written when it comes
  relay-turn-fields  the same, written together at the end of a turn: the least that the gateway's way costs
  relay-turn-keys     the same, and the key of a call looked up and counted: under 1 key and under 100,000
  relay-turn-written  the same, and the counts added to a database once a second
  pipelined-N    relay-fields, the calls of a turn of the event loop written together to N connections
  javascript     the gateway without sockets in a hot loop`;

const CONSTANT = ['constant', 'body', 'fields'];
const BARE = [
  ...CONSTANT,
  'relay',
  'relay-fields',
  'relay-turn-fields',
  'relay-turn-keys',
  'relay-turn-written',
  'pipelined-1',
  'pipelined-4',
  'pipelined-16',
];
const NAMES = ['nginx', 'nginx-lua', ...BARE, 'sluice', 'javascript'];
const LIMIT_MS = 900_000;
const RELAYS = join(import.meta.dir, 'relays.ts');

const calls = (body: string, keys = 1, label = ''): Variant => ({
  label,
  load: { kind: 'calls', body, connections: 64, keys },
  backends: 1,
  processes: 1,
});
const KEYS = 100_000;
const VARIED = calls('varied');
const ONE_ID = calls('one-id');
const MANY = calls('varied', KEYS, `${KEYS} keys`);
/** Those whose cost may grow with the keys that are used. */
const GROWING = ['nginx-lua', 'relay-turn-keys', 'relay-turn-written', 'sluice'];
const SCENARIO: Scenario = { name: 'bare', title: 'Bare relays', variants: [VARIED], base: 'nginx-lua' };

async function measure(options: Options, signal: AbortSignal): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const { subjects, rounds, seconds, priority } = options;
  const world = await prepareWorld({ keys: KEYS, backends: 1 }, priority, stack);
  const pool = stack.use(createPool(world));
  const cases: Case[] = [];
  const own = async () => sluiceSubject('sluice', await checkoutOf(ROOT, world.folder, signal));
  for (const name of subjects) {
    if (name === 'javascript') continue;
    const peer = name === 'sluice' ? own : PEERS[name];
    // A constant answer cannot have the id of its call.
    const variant = CONSTANT.includes(name) ? ONE_ID : VARIED;
    const running = await (peer === undefined
      ? startBare(name, world, stack)
      : pool.take(await peer(), variant));
    const variants = GROWING.includes(name) ? [variant, MANY] : [variant];
    for (const each of variants) cases.push({ subject: { name }, variant: each, running, rounds: [] });
  }
  const rows = await timeCases('bare', cases, { world, rounds, seconds, signal });
  if (rows.length > 0) console.log(markdownOf(SCENARIO, rows, 'nginx-lua'));
  const javascript = subjects.includes('javascript') ? await timeJavaScript(rounds, priority, signal) : [];
  if (javascript.length > 0) console.log(`javascript: CPU µs/call ${spread(javascript, 1)}`);
  keep(options.json, { rounds, seconds, bare: keptOf(rows), javascript });
}

async function startBare(
  name: string,
  { folder, ports, keys, priority }: World,
  stack: AsyncDisposableStack,
) {
  const child = await startChild({
    command: [process.execPath, RELAYS, name, String(ports[0]), keys],
    cores: SUBJECT_CORE,
    cwd: folder,
    priority,
    ready: /^(\d+)\n/,
  });
  return stack.use({ ...child, port: Number(child.line) });
}

/** CPU microseconds a call, by second; the first warms up. */
async function timeJavaScript(seconds: number, priority: number, signal: AbortSignal) {
  const command = ['taskset', '-c', SUBJECT_CORE, process.execPath, RELAYS, 'loop', String(seconds + 1)];
  const printed = await run(command, { signal, priority, timeoutMs: 120_000 });
  return printed.trim().split('\n').slice(1).map(Number);
}

const BENCH = { path: import.meta.path, help: HELP, limitMs: LIMIT_MS, subjects: NAMES };
if (import.meta.main) process.exit(await runCompared(BENCH, measure));
