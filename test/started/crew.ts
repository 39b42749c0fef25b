import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LEDGER_FILE, LEDGER_MIGRATIONS } from '../../gateway/ledger.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../shared/keys/schema.ts';
import { addKey, JSON_HEADERS, opened, temporaryFolder } from './gateway.ts';
import { ROOT, startProcess } from './process.ts';
import { freePort } from './ports.ts';

export const CALL = '{"jsonrpc":"2.0","id":1,"method":"getBlockHeight"}';

export type CrewOptions = Readonly<{
  backendUrl: string;
  processes: number;
  /** `gateway.listen`; any free port when absent. */
  listen?: string;
  /** `storage.data_dir`, when it is not the folder of the config. */
  dataDir?: string;
  /** More TOML: lines of `[gateway]` and of `[storage]`, and what stands at the end of the file. */
  gatewayLines?: string;
  storageLines?: string;
  extra?: string;
}>;

/** Writes the config of gateway processes into `folder`; gives its path and the port of the metrics. */
export function crewConfig(folder: string, options: CrewOptions) {
  const { backendUrl, processes, listen = '127.0.0.1:0', gatewayLines = '', extra = '' } = options;
  const { storageLines = '', dataDir = folder } = options;
  const metricsPort = freePort();
  const path = join(folder, 'sluice.toml');
  writeFileSync(
    path,
    `[gateway]\nlisten = "${listen}"\nmetrics = "127.0.0.1:${metricsPort}"\nprocesses = ${processes}\n${gatewayLines}` +
      `[storage]\ndata_dir = "${dataDir}"\n${storageLines}[[backends]]\nname = "a"\nurl = "${backendUrl}"\n${extra}`,
  );
  return { path, metricsPort, args: [join(ROOT, 'gateway/main.ts'), '--config', path] };
}

/** A gateway of one or several processes before one backend, with what can be seen of it from outside. */
export async function startCrew(options: CrewOptions & { limits?: string }) {
  const folder = temporaryFolder();
  const { args, path, metricsPort } = crewConfig(folder.path, options);
  const { dataDir = folder.path } = options;
  const accounts = opened(join(dataDir, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
  const started = await startProcess(args, folder.path, {}, options.limits);

  /** The pid of every process of ours, by its slot (Linux). */
  function processes(): ReadonlyMap<number, number> {
    const children = readFileSync(`/proc/${started.pid}/task/${started.pid}/children`, 'utf8');
    const bySlot = new Map<number, number>();
    for (const pid of children.trim().split(' ').map(Number)) {
      const slot = slotOf(pid);
      if (slot !== undefined) bySlot.set(slot, pid);
    }
    return bySlot;
  }

  const metricsUrl = new URL(`http://127.0.0.1:${metricsPort}/metrics`);
  const metricsText = async () => (await fetch(metricsUrl)).text();

  /** One request on a connection of its own, which the system gives to any of the processes. */
  function post(key: string, body = CALL, init: RequestInit = {}): Promise<Response> {
    const headers = { ...JSON_HEADERS, 'x-token': key, ...init.headers };
    return fetch(started.url, { method: 'POST', body, keepalive: false, ...init, headers });
  }

  function chargedIn(slot: number, byNode: ReadonlyMap<string, number>): [number, number][] {
    const charged = byNode.get(readFileSync(join(dataDir, `gateway-${slot}.node`), 'utf8').trim());
    return charged === undefined ? [] : [[slot, charged]];
  }

  return {
    ...started,
    folder: dataDir,
    accounts,
    processes,
    pidOf(slot: number): number {
      const pid = processes().get(slot);
      if (pid === undefined) throw new Error(`no process sits in slot ${slot}`);
      return pid;
    },
    config: path,
    metricsUrl,
    metricsText,
    key: (plan = 'scale', credits = 0) => addKey(accounts, plan, credits),
    post,
    statusOf: async (key: string) => (await post(key)).status,
    /** What /health says, with its status. */
    async health(): Promise<string> {
      const response = await fetch(new URL('/health', started.url), { keepalive: options.processes === 1 });
      return `${response.status} ${(await response.text()).trim()}`;
    },
    /** Credits that each process has charged, by its slot, as the ledger says. */
    charged(): ReadonlyMap<number, number> {
      const ledger = opened(join(dataDir, LEDGER_FILE), LEDGER_MIGRATIONS);
      const rows = ledger.query<{ node: string; charged: number }, []>(
        'SELECT node, sum(charged) AS charged FROM spent GROUP BY node',
      );
      const byNode = new Map(rows.all().map(({ node, charged }) => [node, charged]));
      ledger.close();
      return new Map([...processes().keys()].flatMap((slot) => chargedIn(slot, byNode)));
    },
    /** The value of a metric by its whole name, labels included; `undefined` when it is not there. */
    async metric(name: string): Promise<number | undefined> {
      const line = (await metricsText()).split('\n').find((each) => each.startsWith(`${name} `));
      return line === undefined ? undefined : Number(line.slice(name.length + 1));
    },
    /** The state of the backends, from the metrics listener. */
    async status(): Promise<unknown> {
      return (await fetch(new URL('/status.json', metricsUrl))).json();
    },
    async [Symbol.asyncDispose]() {
      accounts.close();
      await started[Symbol.asyncDispose]();
      // Its processes notice that their standard input ended; the folder goes when they have.
      folder[Symbol.dispose]();
    },
  };
}

/** The slot of a process; `undefined` when it has just ended. */
function slotOf(pid: number): number | undefined {
  try {
    const [, slot] = /SLUICE_GATEWAY_WORKER=(\d+)/.exec(readFileSync(`/proc/${pid}/environ`, 'utf8')) ?? [];
    return slot === undefined ? undefined : Number(slot);
  } catch {
    return undefined;
  }
}

/** A gateway of one process; `limits` are commands of a shell before it. */
export const startAlone = (backendUrl: string, more: Partial<CrewOptions> = {}, limits = '') =>
  startCrew({ backendUrl, processes: 1, limits, ...more });
