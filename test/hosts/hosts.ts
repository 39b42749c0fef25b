import { startBackend } from '../fakes/backend.ts';
import { createHost, waited } from '../started/host.ts';
import { startRedis } from '../started/redis.ts';

export type Host = ReturnType<typeof createHost>;

/** Hosts that share one Redis and one backend; `extra` is more TOML for each. All of them end together. */
export async function startHosts(extra = '') {
  const backend = startBackend();
  const redis = await startRedis();
  const hosts: Host[] = [];

  function host(processes = 1, env: Record<string, string> = {}): Host {
    const made = createHost({ redisUrl: redis.url, backendUrl: backend.url, processes, extra, env });
    hosts.push(made);
    return made;
  }

  return {
    redis,
    backend,
    host,
    /** A host whose deploys publishes its accounts. */
    async publishing(): Promise<Host> {
      const made = host();
      await made.startDeploys();
      await waited(isPublishing(made));
      return made;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(hosts.map((each) => each[Symbol.asyncDispose]()));
      await redis[Symbol.asyncDispose]();
      await backend[Symbol.asyncDispose]();
    },
  };
}

export const isPublishing = (host: Host) => async () =>
  (await host.metric('deploys', 'deploys_accounts_published')) === 1;

/** Waits until a call with this key has that status; gives how long that took. */
export const becomes = (host: Host, key: string, status: number) =>
  waited(async () => (await host.status(key)) === status);

export async function end(app: ReturnType<Host['deploys']>, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
  app.kill(signal);
  await app.exited;
}
