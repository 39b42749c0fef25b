import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type RpcRequest, RpcResponse } from '../../gateway/listener/http.ts';
import { listen } from '../../gateway/server.ts';
import { systemClock } from '../../shared/clock.ts';
import { testConfig } from '../../test/started/gateway.ts';
import { cpuSecondsOf } from './proc.ts';
import { type OwnBench, type OwnRun, runOwn } from './report.ts';
import { median, ratios, spread } from './statistics.ts';

const LIMIT_MS = 170_000;
const LISTENERS = ['bun', 'sluice'] as const;
const CALL = '{"jsonrpc":"2.0","id":1,"method":"getSlot"}';
/** What a child is started with, before the name of its listener. */
const SERVE = 'serve';
const ANSWER = '{"jsonrpc":"2.0","result":1,"id":1}';
const FIELDS = { 'content-type': 'application/json; charset=utf-8', 'x-credits-cost': '1' };

const BENCH: OwnBench = {
  path: import.meta.path,
  about: `CPU time that the gateway's listener and Elysia's route on it take for a constant answer, beside Bun.serve alone with the same answer. Both run in turn, each on core 0, with wrk (64 connections) on core 1.
Linux, two cores and wrk are needed.`,
  options: {
    seconds: { value: 'S', help: 'of each measurement', least: 1, most: 60, preset: 2 },
    rounds: { value: 'N', help: 'measurements of each', least: 1, most: 50, preset: 7 },
  },
  limitMs: () => LIMIT_MS,
  measure,
};

if (import.meta.main) {
  const [first = '', listener = '', read] = process.argv.slice(2);
  // As a child of this script it serves, until it is killed.
  if (first === SERVE) serve(listener, read === 'read');
  else process.exit(await runOwn(BENCH, process.argv.slice(2)));
}

/** Serves the constant answer on a free port, and prints its address. */
function serve(listener: string, read: boolean): void {
  if (listener === 'sluice') {
    const body = Buffer.from(ANSWER);
    const answer = async (request: RpcRequest) => {
      if (read) await request.readBody(65_536);
      return new RpcResponse({ status: 200, fields: FIELDS, body });
    };
    const health = () => ({ ok: true, sentence: 'ok' });
    const options = { clock: systemClock, shared: false };
    const listening = listen(testConfig({}).gateway, { answer, health }, options);
    return console.log(listening.kind === 'listening' ? listening.url.href : listening.sentence);
  }
  const answer = async (request: Request) => {
    if (read) await request.arrayBuffer();
    return new Response(ANSWER, { headers: FIELDS });
  };
  const routes = { '/': { POST: answer } };
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, development: false, routes });
  console.log(server.url.href);
}

async function measure({ signal, number, progress, table, say }: OwnRun): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-listener-'));
  const script = join(folder, 'post.lua');
  const field = 'wrk.headers["content-type"] = "application/json"';
  writeFileSync(script, `wrk.method = "POST"\nwrk.body = '${CALL}'\n${field}\n`);
  try {
    const rows = [['body', 'Bun, µs a call', 'Sluice, µs a call', 'ratio', 'difference, µs']];
    for (const read of [false, true]) {
      const [bun = [], own = []] = await inTurn(
        { script, read, rounds: number('rounds'), seconds: number('seconds') },
        signal,
        progress,
      );
      const added = own.map((value, i) => value - (bun[i] ?? Number.NaN));
      const ratio = spread(ratios(own, bun), 2);
      rows.push([read ? 'read' : 'unread', spread(bun, 1), spread(own, 1), ratio, median(added).toFixed(1)]);
    }
    table(rows);
    say(`${number('rounds')} rounds of ${number('seconds')} s each, in turn: median (lowest-highest).`);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Microseconds of CPU a call by listener and round; every other round begins with the other listener. */
async function inTurn(
  {
    script,
    read,
    rounds,
    seconds,
  }: Readonly<{ script: string; read: boolean; rounds: number; seconds: number }>,
  signal: AbortSignal,
  progress: (what: string) => void,
): Promise<readonly number[][]> {
  const command = ['taskset', '-c', '0', process.execPath, import.meta.path, SERVE];
  const children = LISTENERS.map((listener) => Bun.spawn([...command, listener, read ? 'read' : 'unread']));
  try {
    const figures: number[][] = LISTENERS.map(() => []);
    const lines = await Promise.all(children.map(({ stdout }) => stdout.getReader().read()));
    for (let round = 0; round <= rounds; round++) {
      progress(`body ${read ? 'read' : 'unread'}, round ${round} of ${rounds}`);
      for (const i of round % 2 === 0 ? [0, 1] : [1, 0]) {
        signal.throwIfAborted();
        const figure = await microsecondsOf(
          children[i]?.pid ?? 0,
          Buffer.from(lines[i]?.value ?? [])
            .toString()
            .trim(),
          script,
          seconds,
        );
        if (round > 0) figures[i]?.push(figure); // the first round warms up
      }
    }
    return figures;
  } finally {
    for (const child of children) child.kill();
  }
}

async function microsecondsOf(pid: number, url: string, script: string, seconds: number): Promise<number> {
  const before = cpuSecondsOf(pid);
  const wrk = ['taskset', '-c', '1', 'wrk', '-t1', '-c64', `-d${Math.round(seconds)}s`, '-s', script, url];
  const report = await new Response(Bun.spawn(wrk).stdout).text();
  const calls = Number(/(\d+) requests in/.exec(report)?.[1]);
  if (!(calls > 0) || report.includes('Non-2xx')) throw new Error(`wrk could not measure ${url}:\n${report}`);
  return ((cpuSecondsOf(pid) - before) * 1e6) / calls;
}
