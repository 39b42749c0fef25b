import { Counter, Gauge, type Registry } from 'prom-client';
import type { Pump } from './lease/pump.ts';

/** What can be seen of the link between a process and the store that it shares limits by. */
export type StoreLink = Pick<Pump, 'isOut' | 'counts'>;

/** Adds what the registry shows of the store of shared limits. Of several processes, it is out when one of them finds it so. */
export function gaugeStore(registry: Registry, link: StoreLink): void {
  const registers = [registry];
  new Gauge({
    name: 'sluice_gateway_store_out',
    help: '1 while the store of shared limits does not answer.',
    aggregator: 'max',
    registers,
    collect() {
      this.set(link.isOut() ? 1 : 0);
    },
  });
  new Counter({
    name: 'sluice_gateway_store_messages_total',
    help: 'Messages to the store of shared limits, by outcome.',
    labelNames: ['outcome'],
    registers,
    collect() {
      const { messages, failed } = link.counts();
      this.reset();
      this.inc({ outcome: 'answered' }, messages - failed);
      this.inc({ outcome: 'failed' }, failed);
    },
  });
  new Counter({
    name: 'sluice_gateway_store_asks_total',
    help: 'Asks in these messages, each for one account: with Redis, commands.',
    registers,
    collect() {
      this.reset();
      this.inc(link.counts().asks);
    },
  });
}
