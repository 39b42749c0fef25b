import { afterEach, beforeEach, expect, test } from 'bun:test';
import { closeSync, constants, openSync, readSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../shared/keys/schema.ts';
import { startBackend } from '../fakes/backend.ts';
import { addKey, opened, temporaryFolder } from '../started/gateway.ts';
import { freePort } from '../started/ports.ts';
import { childEnv, ROOT } from '../started/process.ts';
import { until } from '../started/stack.ts';

let folder: ReturnType<typeof temporaryFolder>;
let backend: ReturnType<typeof startBackend>;
beforeEach(() => {
  folder = temporaryFolder();
  backend = startBackend();
});
afterEach(async () => {
  await backend[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

/** A real pipe whose other end is read only when the test says so. */
function openPipe(name: string) {
  const path = join(folder.path, name);
  Bun.spawnSync(['mkfifo', path]);
  const reading = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const writing = openSync(path, constants.O_WRONLY);
  const bytes = Buffer.alloc(65_536);
  let text = '';
  return {
    writing,
    /** Fills it to the last byte, with one line. */
    fill() {
      const filling = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK);
      try {
        for (;;) writeSync(filling, '.'.repeat(4_096));
      } catch {
        closeSync(filling); // it is full
      }
    },
    /** Everything that was read so far, and what can be read now. */
    read(): string {
      try {
        for (let count; (count = readSync(reading, bytes)) > 0;) text += bytes.toString('utf8', 0, count);
      } catch {
        // It is empty.
      }
      return text;
    },
    [Symbol.dispose]() {
      closeSync(reading);
      closeSync(writing);
    },
  };
}

const metricsOf = async (port: number) => (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
const droppedIn = (metrics: string) =>
  Number(/^(?:sluice_gateway|deploys)_log_lines_dropped_total (\d+)$/m.exec(metrics)?.[1]);

/** An app whose standard output and error are `pipe`, and its ports. */
async function startApp(app: 'gateway' | 'deploys', pipe: { writing: number }, lines = '') {
  const [port, metrics] = [await freePort(), await freePort()];
  const config = join(folder.path, 'sluice.toml');
  const text =
    `[${app}]\nlisten = "127.0.0.1:${port}"\nmetrics = "127.0.0.1:${metrics}"\n${lines}` +
    `[storage]\ndata_dir = "${folder.path}/data"\n[[backends]]\nname = "a"\nurl = "${backend.url}"\n`;
  writeFileSync(config, text);
  const accounts = opened(join(folder.path, 'data', ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
  addKey(accounts, 'scale'); // without an account a gateway is not ready
  accounts.close();
  const child = Bun.spawn([process.execPath, join(ROOT, app, 'main.ts'), '--config', config], {
    env: childEnv(),
    stdin: 'ignore',
    stdout: pipe.writing,
    stderr: pipe.writing,
  });
  return {
    child,
    /** The status of /health; `undefined` while nothing answers. */
    health: () =>
      fetch(`http://127.0.0.1:${port}/health`, { signal: AbortSignal.timeout(2_000) }).then(
        ({ status }) => status,
        () => undefined,
      ),
    dropped: async () => droppedIn(await metricsOf(metrics)),
    /** Makes the config one whose every reload logs 100 kB. */
    spoil: () => writeFileSync(config, `${text}[plans.pro]\n${manyUnknownKeys()}`),
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await child.exited;
    },
  };
}

const manyUnknownKeys = () => Array.from({ length: 1_000 }, (_, i) => `unknown_key_${i} = 1\n`).join('');

/** Makes the gateway log until lines are dropped: far more than a pipe holds. */
async function floodLog(gateway: Awaited<ReturnType<typeof startApp>>): Promise<void> {
  gateway.spoil();
  await until(async () => {
    gateway.child.kill('SIGHUP');
    return (await gateway.dropped()) > 0;
  });
}

test.each([1, 2])(
  'M1 a log without a reader keeps a gateway of %d processes neither from answering nor from ending',
  async (processes) => {
    using pipe = openPipe('log');
    await using gateway = await startApp('gateway', pipe, `processes = ${processes}\n`);
    await until(async () => pipe.read().includes('"listening"'));
    await floodLog(gateway);
    expect(await gateway.health()).toBe(200);
    gateway.child.kill('SIGTERM');
    expect(await gateway.child.exited).toBe(0);
  },
);

test('M1 a reader that comes back sees the lines that were kept, then how many were dropped', async () => {
  using pipe = openPipe('log');
  await using gateway = await startApp('gateway', pipe);
  await until(async () => pipe.read().includes('"listening"'));
  await floodLog(gateway);
  const report = await until(async () => /^.*lines to stdout were dropped.*$/m.exec(pipe.read())?.[0]);
  const { dropped, level, app } = JSON.parse(report);
  expect([level, app]).toEqual([40, 'gateway']);
  expect(dropped).toBe(await gateway.dropped());
  const lines = pipe.read().split('\n').slice(0, -1);
  expect(lines.every((line) => JSON.parse(line).time > 0)).toBe(true);
  expect(lines.filter((line) => line.includes('the config was not reloaded')).length).toBeGreaterThan(5);
  gateway.child.kill('SIGTERM');
  await until(async () => pipe.read().includes('"stopped"'));
  expect(await gateway.child.exited).toBe(0);
});

test('M1 deploys behind a full pipe starts, answers and ends, and its lines are there when the reader is', async () => {
  using pipe = openPipe('log');
  pipe.fill();
  await using deploys = await startApp('deploys', pipe, 'rpc_urls = ["http://127.0.0.1:1"]\n');
  await until(async () => (await deploys.health()) === 503);
  for (let i = 0; i < 20; i++) deploys.child.kill('SIGHUP');
  expect(await deploys.health()).toBe(503);
  expect(await deploys.dropped()).toBe(0);
  await until(async () => pipe.read().includes('"listening"'));
  pipe.fill();
  deploys.child.kill('SIGTERM');
  expect(await deploys.child.exited).toBe(0);
});

test('M1 a supervisor that passes on what its workers write to standard error never waits for the reader', async () => {
  using pipe = openPipe('errors');
  const script = `
    import { createStderrTail } from ${JSON.stringify(join(ROOT, 'gateway/workers.ts'))};
    import { droppedLines, settleOutputs, writeLines } from ${JSON.stringify(join(ROOT, 'shared/log.ts'))};
    const worker = Bun.spawn(['sh', '-c', 'yes | head -c 3000000 >&2'], { stdout: 'ignore', stderr: 'pipe' });
    const tail = createStderrTail(worker.stderr, (text) => writeLines('stderr', text));
    tail.release();
    await tail.ended;
    await settleOutputs();
    console.log(droppedLines());
    process.exit(0);`;
  const child = Bun.spawn([process.execPath, '-e', script], {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: pipe.writing,
  });
  const [dropped, code] = await Promise.all([child.stdout.text(), child.exited]);
  expect(code).toBe(0);
  expect(Number(dropped)).toBeGreaterThan(0);
  expect(pipe.read()).toStartWith('y\ny\n');
});
