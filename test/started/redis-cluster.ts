import { freePort, redisCli, type StartedRedis, startRedis } from './redis.ts';

const SLOTS = 16_384;
const READY_MS = 15_000;

/** Three masters without replicas, each with a third of the slots. */
export type StartedCluster = Readonly<{ nodes: readonly StartedRedis[]; url: string }> & AsyncDisposable;

export async function startRedisCluster(): Promise<StartedCluster> {
  const settings = ['--cluster-enabled', 'yes', '--cluster-node-timeout', '1000'];
  const full = ['--cluster-require-full-coverage', 'no'];
  const nodes = await Promise.all([0, 1, 2].map(() => startRedis([...settings, ...full], clusterPort())));
  const [first] = nodes;
  if (first === undefined) throw new Error('no node was started');
  for (const [index, node] of nodes.entries()) {
    const from = Math.floor((index * SLOTS) / nodes.length);
    const to = Math.floor(((index + 1) * SLOTS) / nodes.length) - 1;
    await redisCli(node.port, 'CLUSTER', 'ADDSLOTSRANGE', String(from), String(to));
    await redisCli(node.port, 'CLUSTER', 'SET-CONFIG-EPOCH', String(index + 1));
  }
  for (const node of nodes) await redisCli(node.port, 'CLUSTER', 'MEET', '127.0.0.1', String(first.port));
  const untilMs = performance.now() + READY_MS;
  while (!(await agreed(nodes))) {
    if (performance.now() > untilMs) throw new Error('the cluster was not ready in time');
    await Bun.sleep(50);
  }
  return {
    nodes,
    url: first.url,
    async [Symbol.asyncDispose]() {
      await Promise.all(nodes.map((node) => node[Symbol.asyncDispose]()));
    },
  };
}

async function agreed(nodes: readonly StartedRedis[]): Promise<boolean> {
  const states = await Promise.all(nodes.map(({ port }) => redisCli(port, 'CLUSTER', 'INFO')));
  return states.every((info) => info.includes('cluster_state:ok') && info.includes('cluster_known_nodes:3'));
}

/** A free port whose bus port, 10,000 above, is a port too. */
function clusterPort(): number {
  for (;;) {
    const port = freePort();
    if (port + 10_000 < 65_536) return port;
  }
}
