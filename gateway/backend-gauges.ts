import { Gauge, type Registry } from 'prom-client';
import type { Backend } from './backend/backend.ts';
import { COMMITMENTS } from './backend/view.ts';

/**
 * Adds what the registry shows of each backend whenever it is asked. Of several processes, a backend is in when all of
 * them have it in, and its slot is the newest that one of them has seen.
 */
export function gaugeBackends(registry: Registry, backends: readonly Backend[]): void {
  const registers = [registry];
  new Gauge({
    name: 'sluice_gateway_backend_calls_in_flight',
    help: 'Calls at a backend, to the last byte of their answers.',
    labelNames: ['backend'],
    registers,
    collect() {
      for (const { config, inFlight } of backends) this.set({ backend: config.name }, inFlight);
    },
  });
  new Gauge({
    name: 'sluice_gateway_backend_in',
    help: '1 while a backend takes part, 0 while probes leave it out.',
    labelNames: ['backend'],
    aggregator: 'min',
    registers,
    collect() {
      for (const { config, standing } of backends)
        this.set({ backend: config.name }, standing.out === undefined ? 1 : 0);
    },
  });
  new Gauge({
    name: 'sluice_gateway_backend_slot',
    help: 'Newest slot that a backend has shown, by commitment.',
    labelNames: ['backend', 'commitment'],
    aggregator: 'max',
    registers,
    collect() {
      for (const { config, view } of backends)
        for (const commitment of COMMITMENTS)
          // A slot that is not known is no slot 0, which would look like a lag.
          if (view.tip[commitment] > 0) this.set({ backend: config.name, commitment }, view.tip[commitment]);
    },
  });
}
