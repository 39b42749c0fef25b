import type { Clock } from '../shared/clock.ts';
import type { Health } from './app.ts';
import type { Backend } from './backend/backend.ts';
import type { Journal } from './limits/journal.ts';

/** Whether the gateway can serve, in a sentence that names the backends which do not. */
export function healthOf(backends: readonly Backend[], journal: Journal, clock: Clock): ReturnType<Health> {
  if (journal.isFailing())
    return { ok: false, sentence: 'charges cannot be written: trials are refused with 503' };
  const troubled = backends.flatMap((backend) => troubleOf(backend, clock) ?? []);
  if (troubled.length === 0) return { ok: true, sentence: 'ok' };
  const names = troubled.join(', ');
  if (troubled.length < backends.length)
    return { ok: true, sentence: `ok, but not these backends: ${names}` };
  return { ok: false, sentence: `no backend is well: ${names}` };
}

function troubleOf(backend: Backend, clock: Clock): string | undefined {
  const { config, standing } = backend;
  if (standing.out === 'lagging') return `${config.name} (${standing.lagSlots} slots behind)`;
  if (standing.out !== undefined) return `${config.name} (${standing.out})`;
  return backend.isFailing(clock) ? `${config.name} (failing)` : undefined;
}
