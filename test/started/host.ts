import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LEDGER_FILE, LEDGER_MIGRATIONS } from '../../gateway/ledger.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../shared/keys/schema.ts';
import { objectsOf, sluiceAlone } from '../cli/sluice.ts';
import { JSON_HEADERS, opened, temporaryFolder } from './gateway.ts';
import { ROOT, type Started, startProcess } from './process.ts';
import { freePort } from './ports.ts';

const CALL = '{"jsonrpc":"2.0","id":1,"method":"getSlot"}';

type HostOptions = Readonly<{
  redisUrl: string;
  backendUrl: string;
  processes?: number;
  /** More TOML at the end of the config. */
  extra?: string;
  /** More of the environment of its apps. */
  env?: Record<string, string>;
}>;

/** A data directory and a config of its own: what a host has apart from the others, on this machine. */
export function createHost({ redisUrl, backendUrl, processes = 1, extra = '', env = {} }: HostOptions) {
  const folder = temporaryFolder();
  const config = join(folder.path, 'sluice.toml');
  // A port that the system chose could be taken by a connection before several processes share it. One process alone has
  // such a port all the same: deploys cannot read through it then, and counts no calls of its own.
  const ports = {
    gateway: processes > 1 ? freePort() : 0,
    metrics: freePort(),
    deploys: freePort(),
    deploysMetrics: freePort(),
  };
  const running: (Started & AsyncDisposable)[] = [];
  let gateway: (Started & AsyncDisposable) | undefined;
  let deploys: (Started & AsyncDisposable) | undefined;
  configure(extra);

  function configure(more: string): void {
    writeFileSync(
      config,
      `[gateway]\nlisten = "127.0.0.1:${ports.gateway}"\nmetrics = "127.0.0.1:${ports.metrics}"\nprocesses = ${processes}\n` +
        `[deploys]\nlisten = "127.0.0.1:${ports.deploys}"\nmetrics = "127.0.0.1:${ports.deploysMetrics}"\n` +
        `[storage]\ndata_dir = "${folder.path}"\nredis = "${redisUrl}"\n` +
        `[[backends]]\nname = "a"\nurl = "${backendUrl}"\n${more}`,
    );
  }

  async function start(app: 'gateway' | 'deploys'): Promise<Started & AsyncDisposable> {
    const args = [join(ROOT, `${app}/main.ts`), '--config', config];
    const started = await startProcess(args, folder.path, env);
    running.push(started);
    return started;
  }

  async function cli(...args: readonly string[]) {
    const ended = await sluiceAlone(folder.path, [...args, '--json', '--config', config]);
    if (ended.code !== 0) throw new Error(ended.err);
    return objectsOf(ended) as Record<string, string>[]; // as the command line documents it
  }

  const ledger = () => opened(join(folder.path, LEDGER_FILE), LEDGER_MIGRATIONS);
  return {
    folder: folder.path,
    config,
    ports,
    configure,
    cli,
    async startGateway() {
      return (gateway = await start('gateway'));
    },
    async startDeploys() {
      return (deploys = await start('deploys'));
    },
    gateway: () => gateway ?? notStarted(),
    deploys: () => deploys ?? notStarted(),
    accounts: () => opened(join(folder.path, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS),
    ledger,
    /** Makes an account and a key of it; gives the key and its id. */
    async key(account: string, plan: string): Promise<{ key: string; id: string }> {
      await cli('account', 'create', account, '--plan', plan);
      const [made] = await cli('key', 'create', account);
      return { key: made?.['key'] ?? '', id: made?.['key_id'] ?? '' };
    },
    post: (key: string, body = CALL) =>
      fetch((gateway ?? notStarted()).url, {
        method: 'POST',
        body,
        keepalive: false,
        headers: { ...JSON_HEADERS, 'x-token': key },
      }),
    /** The status of one call. */
    async status(key: string): Promise<number> {
      const answer = await this.post(key);
      await answer.text();
      return answer.status;
    },
    /** The value of a metric of an app; `undefined` when it is not there. */
    async metric(app: 'gateway' | 'deploys', name: string): Promise<number | undefined> {
      const port = app === 'gateway' ? ports.metrics : ports.deploysMetrics;
      const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
      const line = text.split('\n').find((each) => each.startsWith(`${name} `));
      return line === undefined ? undefined : Number(line.slice(name.length + 1));
    },
    async [Symbol.asyncDispose]() {
      for (const each of running) await each[Symbol.asyncDispose]();
      folder[Symbol.dispose]();
    },
  };
}

function notStarted(): never {
  throw new Error('it was not started');
}

/** Waits until `is` gives true, at most `mostMs`; gives the milliseconds that took. */
export async function waited(is: () => Promise<boolean> | boolean, mostMs = 15_000): Promise<number> {
  const sinceMs = performance.now();
  while (!(await is())) {
    if (performance.now() - sinceMs > mostMs) throw new Error(`it was not so within ${mostMs} ms`);
    await Bun.sleep(10); // between two looks at processes that move by themselves
  }
  return performance.now() - sinceMs;
}
