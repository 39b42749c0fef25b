import type { BackendConfig } from '../../shared/config/backends.ts';
import { PROFILES } from '../../shared/config/profiles.ts';

/** What decides it: the software, and what it is asked for. */
type Kind = Pick<BackendConfig, 'profile' | 'lanes'>;

/** Whether a backend goes with the tip of the chain: what serves nothing but history does not, nor does an archive's software. */
export function followsTip({ profile, lanes }: Kind): boolean {
  return (
    PROFILES[profile].followsTip &&
    lanes.some((lane) => lane === 'state' || lane === 'scan' || lane === 'send')
  );
}

/** Whether a backend of the history methods is a live node, which serves the state of now; it is an archive otherwise. */
export function isLiveNode({ profile, lanes }: Kind): boolean {
  return PROFILES[profile].followsTip && lanes.includes('state');
}
