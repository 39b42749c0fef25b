import { waited } from './host.ts';
import { freePort } from './ports.ts';
import { redisCli, type StartedRedis, startRedis } from './redis.ts';

const SLOTS = 16_384;

/** Three masters, each with a third of the slots, without replicas until one is asked for. */
export type StartedCluster = Readonly<{
  nodes: readonly StartedRedis[];
  url: string;
  /** One more node, a copy of `master`; it takes over only on command. */
  addReplica(master: StartedRedis): Promise<StartedRedis>;
}> &
  AsyncDisposable;

const SETTINGS = [
  ['--cluster-enabled', 'yes'],
  ['--cluster-node-timeout', '1000'],
  ['--cluster-require-full-coverage', 'no'],
  ['--cluster-replica-no-failover', 'yes'],
  ['--repl-diskless-sync-delay', '0'],
].flat();

export async function startRedisCluster(): Promise<StartedCluster> {
  const nodes = await Promise.all([0, 1, 2].map(() => startRedis(SETTINGS, freePort())));
  const [first] = nodes;
  if (first === undefined) throw new Error('no node was started');
  for (const [index, node] of nodes.entries()) {
    const from = Math.floor((index * SLOTS) / nodes.length);
    const to = Math.floor(((index + 1) * SLOTS) / nodes.length) - 1;
    await redisCli(node.port, 'CLUSTER', 'ADDSLOTSRANGE', String(from), String(to));
    await redisCli(node.port, 'CLUSTER', 'SET-CONFIG-EPOCH', String(index + 1));
  }
  for (const node of nodes) await redisCli(node.port, 'CLUSTER', 'MEET', '127.0.0.1', String(first.port));
  await agreement(nodes);
  const replicas: StartedRedis[] = [];
  return {
    nodes,
    url: first.url,
    async addReplica(master) {
      const replica = await startRedis(SETTINGS, freePort());
      replicas.push(replica);
      await replica.cli('CLUSTER', 'MEET', '127.0.0.1', String(master.port));
      await agreement([...nodes, ...replicas]);
      await replica.cli('CLUSTER', 'REPLICATE', await master.cli('CLUSTER', 'MYID'));
      await waited(async () => (await replica.cli('INFO', 'replication')).includes('master_link_status:up'));
      await waited(async () => {
        const seen = await Promise.all(nodes.map((node) => node.cli('CLUSTER', 'SLOTS')));
        return seen.every((slots) => slots.includes(String(replica.port)));
      });
      return replica;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...nodes, ...replicas].map((node) => node[Symbol.asyncDispose]()));
    },
  };
}

/** Waits until every node knows every other and that all slots are served. */
function agreement(nodes: readonly StartedRedis[]): Promise<unknown> {
  const known = `cluster_known_nodes:${nodes.length}`;
  return waited(async () => {
    const states = await Promise.all(nodes.map(({ port }) => redisCli(port, 'CLUSTER', 'INFO')));
    return states.every((info) => info.includes('cluster_state:ok') && info.includes(known));
  });
}
