import { join } from 'node:path';
import { Counter, Gauge, Registry } from 'prom-client';
import { unreachable } from '../../shared/brand.ts';
import type { Clock } from '../../shared/clock.ts';
import { type Config, gatewayUrl } from '../../shared/config/config.ts';
import type { Environment } from '../../shared/config/table.ts';
import { createLog } from '../../shared/log.ts';
import { stopSignal } from '../../shared/stop.ts';
import { takeLock } from '../../shared/store/lock.ts';
import { listenForMetrics } from '../metrics-listener.ts';
import { togetherStatus } from '../status.ts';
import { holdAddress } from './address.ts';
import { launchChild } from './child.ts';
import { createCrew, type Crew, type CrewEnd } from './crew.ts';
import { createTally } from './tally.ts';

/** How the supervisor was started; its processes are started with the same. */
type Started = Readonly<{ configPath: string | undefined; env: Environment; supervised: boolean }>;

const MAIN = join(import.meta.dir, '../main.ts');

/**
 * Runs `gateway.processes` gateway processes on one port until a stop is asked for; gives the exit code. It serves
 * nothing itself: it holds the data directory and the metrics listener, and fills the place of a process that ends.
 */
export async function superviseGateway(config: Config, run: Started, clock: Clock): Promise<number> {
  const stop = stopSignal(run.supervised);
  const { listen, metrics: metricsAddress, processes } = config.gateway;
  const locking = takeLock(config.storage.dataDir, 'gateway');
  if (locking.kind === 'refused') return complain(locking.sentence);
  const holding = holdAddress(listen);
  if (holding.kind === 'refused') return complain(holding.sentence);

  const log = createLog('gateway');
  const tally = createTally();
  const args = run.configPath === undefined ? [] : ['--config', run.configPath];
  const { port } = holding.address;
  const err = (bytes: Uint8Array) => void process.stderr.write(bytes);
  const crew = createCrew({
    size: processes,
    launch: (slot) => launchChild({ slot, command: [MAIN, ...args], env: run.env, port, err, clock }),
    clock,
    log,
    tally,
  });
  const own = registryOf(crew);
  const text = async () => {
    await crew.count();
    return tally.text(own);
  };
  const metrics = listenForMetrics(metricsAddress, { text, contentType: own.contentType }, async () =>
    togetherStatus(await crew.statuses()),
  );
  if (metrics.kind === 'refused') return complain(metrics.sentence);

  process.on('SIGHUP', crew.reload);
  const announce = async () => {
    const { href } = gatewayUrl({ ...config.gateway, listen: { ...listen, port: await port() } });
    if (run.supervised) console.log(JSON.stringify({ ready: 'gateway', url: href }));
    log.info({ url: href, metrics: metrics.url.href, processes }, 'listening');
  };
  const end = await crew.run(stop, () => void announce());
  await metrics.close();
  locking.lock.release();
  log.info('stopped');
  return codeOf(end);
}

function registryOf(crew: Crew): Registry {
  const registry = new Registry();
  const registers = [registry];
  new Gauge({
    name: 'sluice_gateway_processes',
    help: 'Processes that listen.',
    registers,
    collect() {
      this.set(crew.listening());
    },
  });
  new Counter({
    name: 'sluice_gateway_process_restarts_total',
    help: 'Processes started in the place of one that ended.',
    registers,
    collect() {
      this.reset();
      this.inc(crew.restarts());
    },
  });
  return registry;
}

function codeOf(end: CrewEnd): number {
  switch (end.kind) {
    case 'drained':
      return 0;
    case 'killed':
      return complain(`Gateway processes ${end.slots.join(', ')} did not stop in time and were killed.`);
    case 'gave-up':
      return complain(end.words);
    default:
      return unreachable(end);
  }
}

function complain(sentence: string): 1 {
  console.error(sentence);
  return 1;
}
