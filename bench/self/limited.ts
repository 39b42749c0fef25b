import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../shared/keys/schema.ts';
import { crewConfig } from '../../test/started/crew.ts';
import { opened, temporaryFolder } from '../../test/started/gateway.ts';
import { ROOT, startProcess } from '../../test/started/process.ts';
import { startRedis } from '../../test/started/redis.ts';
import { addAccounts } from './many-keys.ts';
import type { Touched, Touching } from './toucher.ts';

/** What decides on limits: a process by itself, several through the ledger of their host, or through a Redis. */
export type Centre = 'alone' | 'ledger' | 'redis';

type Limited = Readonly<{
  centre: Centre;
  processes: number;
  /** Accounts with a key each, all on one plan: lines of `[plans.bench]`. */
  accounts: number;
  plan: string;
}>;

/** Gateway processes over a centre, with accounts that nobody has used. No backend: nothing is sent to one. */
export async function startLimited({ centre, processes, accounts, plan }: Limited) {
  const folder = temporaryFolder();
  const store = opened(join(folder.path, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
  addAccounts(store, 'bench', accounts);
  store.close();
  const redis = centre === 'redis' ? await startRedis() : undefined;
  const { args } = crewConfig(folder.path, {
    backendUrl: 'http://127.0.0.1:9',
    processes,
    storageLines: redis === undefined ? '' : `redis = "${redis.url}"\n`,
    extra: `[plans.bench]\n${plan}\n`,
  });
  const gateway = await startProcess(args, folder.path);
  return {
    url: gateway.url.href,
    redis,
    /** The processes that answer, without their supervisor. */
    pids: processes === 1 ? [gateway.pid] : childrenOf(gateway.pid),
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      await redis?.[Symbol.asyncDispose]();
      folder[Symbol.dispose]();
    },
  };
}

function childrenOf(pid: number): readonly number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  return children === '' ? [] : children.split(' ').map(Number);
}

/** Runs the toucher in a process of its own. */
export async function touchFrom(touching: Touching, signal: AbortSignal): Promise<Touched> {
  const child = Bun.spawn([process.execPath, join(ROOT, 'bench/self/toucher.ts'), JSON.stringify(touching)], {
    stdout: 'pipe',
    signal,
  });
  const printed = await child.stdout.text();
  if ((await child.exited) !== 0) throw new Error('the toucher failed');
  return JSON.parse(printed);
}
