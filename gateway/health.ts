import type { Clock } from '../shared/clock.ts';
import type { Backend } from './backend/backend.ts';
import { isLiveNode } from './backend/live-node.ts';
import type { Journal } from './limits/journal.ts';
import type { Choice } from './mirror/choice.ts';

/** Says in a sentence whether the gateway can serve. */
export type Health = () => Readonly<{ ok: boolean; sentence: string }>;

/**
 * Whether the gateway can serve, in a sentence that names the backends which do not. It cannot when none of those that
 * serve accounts is well, whatever archives and asset servers are; or none at all, where none serves accounts.
 */
export function healthOf(
  backends: readonly Backend[],
  journal: Journal,
  clock: Clock,
  choice: Choice = 'local',
): ReturnType<Health> {
  if (choice === 'unknown')
    return {
      ok: false,
      sentence:
        'no accounts are known: none is kept here, and none that deploys on another host has published was read from Redis yet',
    };
  if (journal.isFailing())
    return { ok: false, sentence: 'charges cannot be written: trials are refused with 503' };
  const troubled = backends.filter((backend) => troubleOf(backend, clock) !== undefined);
  if (troubled.length === 0) return { ok: true, sentence: 'ok' };
  const names = troubled.map((backend) => troubleOf(backend, clock)).join(', ');
  const state = backends.filter(({ config }) => isLiveNode(config));
  const needed = state.length > 0 ? state : backends;
  if (needed.some((backend) => !troubled.includes(backend)))
    return { ok: true, sentence: `ok, but not these backends: ${names}` };
  return { ok: false, sentence: `no backend is well: ${names}` };
}

function troubleOf(backend: Backend, clock: Clock): string | undefined {
  const { config, standing } = backend;
  const { out, reason, lagSlots } = standing;
  if (out === 'lagging') return `${config.name} (${lagSlots} slots behind)`;
  if (out === 'unreachable') return `${config.name} (${reason})`;
  if (out !== undefined) return `${config.name} (${out})`;
  return backend.isFailing(clock) ? `${config.name} (failing)` : undefined;
}
