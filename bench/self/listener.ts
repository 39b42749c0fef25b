import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { AnswerRequest } from '../../gateway/answer.ts';
import { listen } from '../../gateway/server.ts';
import { systemClock } from '../../shared/clock.ts';
import { testConfig } from '../../test/started/gateway.ts';
import { cpuSecondsOf } from './proc.ts';
import { runBench, tableOf } from './report.ts';
import { median, ratios, spread } from './statistics.ts';

const HELP = `bun bench/self/listener.ts [--seconds 2] [--rounds 7]

CPU time that Elysia's compiled POST / of the gateway's listener takes for a constant answer, beside Bun's own route
with the same answer. Both run in turn, each on core 0, with wrk (64 connections) on core 1.
Linux, two cores and wrk are needed.`;

const { values } = parseArgs({
  options: {
    help: { type: 'boolean', default: false },
    seconds: { type: 'string', default: '2' },
    rounds: { type: 'string', default: '7' },
    /** Internal: the listener to serve with, until it is killed. */
    serve: { type: 'string' },
    /** Internal: whether the answer waits for the request's body. */
    read: { type: 'boolean', default: false },
  },
});

const LIMIT_MS = 170_000;
const LISTENERS = ['bun', 'elysia'] as const;
const CALL = '{"jsonrpc":"2.0","id":1,"method":"getSlot"}';
const ANSWER = '{"jsonrpc":"2.0","result":1,"id":1}';
const FIELDS = { 'content-type': 'application/json; charset=utf-8', 'x-credits-cost': '1' };

if (values.help) console.log(HELP);
else if (values.serve !== undefined) serve(values.serve, values.read);
else if (import.meta.main) process.exit(await runBench(import.meta.path, LIMIT_MS, measure));

/** Serves the constant answer on a free port, and prints its address. */
function serve(listener: string, read: boolean): void {
  const answer: AnswerRequest = async (request) => {
    if (read) await request.arrayBuffer();
    return new Response(ANSWER, { headers: FIELDS });
  };
  if (listener === 'elysia') {
    const health = () => ({ ok: true, sentence: 'ok' });
    const options = { clock: systemClock, shared: false };
    const listening = listen(testConfig({}).gateway, { answer, health }, options);
    return console.log(listening.kind === 'listening' ? listening.url.href : listening.sentence);
  }
  const routes = { '/': { POST: answer } };
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, development: false, routes });
  console.log(server.url.href);
}

async function measure(signal: AbortSignal): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-listener-'));
  const script = join(folder, 'post.lua');
  const field = 'wrk.headers["content-type"] = "application/json"';
  writeFileSync(script, `wrk.method = "POST"\nwrk.body = '${CALL}'\n${field}\n`);
  try {
    const rows = [['body', 'Bun, µs a call', 'Elysia, µs a call', 'ratio', 'Elysia adds, µs']];
    for (const read of [false, true]) {
      const [bun = [], elysia = []] = await inTurn(script, read, signal);
      const added = elysia.map((value, i) => value - (bun[i] ?? Number.NaN));
      const ratio = spread(ratios(elysia, bun), 2);
      rows.push([
        read ? 'read' : 'unread',
        spread(bun, 1),
        spread(elysia, 1),
        ratio,
        median(added).toFixed(1),
      ]);
    }
    console.log(tableOf(rows));
    console.log(`\n${values.rounds} rounds of ${values.seconds} s each, in turn: median (lowest-highest).`);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Microseconds of CPU a call by listener and round; every other round begins with the other listener. */
async function inTurn(script: string, read: boolean, signal: AbortSignal): Promise<readonly number[][]> {
  const command = ['taskset', '-c', '0', process.execPath, import.meta.path, ...(read ? ['--read'] : [])];
  const children = LISTENERS.map((listener) => Bun.spawn([...command, '--serve', listener]));
  try {
    const figures: number[][] = LISTENERS.map(() => []);
    const lines = await Promise.all(children.map(({ stdout }) => stdout.getReader().read()));
    for (let round = 0; round <= Number(values.rounds); round++) {
      for (const i of round % 2 === 0 ? [0, 1] : [1, 0]) {
        signal.throwIfAborted();
        const figure = await microsecondsOf(
          children[i]?.pid ?? 0,
          Buffer.from(lines[i]?.value ?? [])
            .toString()
            .trim(),
          script,
        );
        if (round > 0) figures[i]?.push(figure); // the first round warms up
      }
    }
    return figures;
  } finally {
    for (const child of children) child.kill();
  }
}

async function microsecondsOf(pid: number, url: string, script: string): Promise<number> {
  const before = cpuSecondsOf(pid);
  const wrk = ['taskset', '-c', '1', 'wrk', '-t1', '-c64', `-d${values.seconds}s`, '-s', script, url];
  const report = await new Response(Bun.spawn(wrk).stdout).text();
  const calls = Number(/(\d+) requests in/.exec(report)?.[1]);
  if (!(calls > 0) || report.includes('Non-2xx')) throw new Error(`wrk could not measure ${url}:\n${report}`);
  return ((cpuSecondsOf(pid) - before) * 1e6) / calls;
}
