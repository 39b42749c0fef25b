import type { Store } from '../../shared/store/open.ts';
import type { BlockTimeStore } from '../watch/block-time.ts';

/** Block times remembered in `store`; one row per deploy slot ever seen. */
export function createBlockTimeStore(store: Store): BlockTimeStore {
  const find = store.prepare<{ unix_seconds: number }, [bigint]>(
    'SELECT unix_seconds FROM block_times WHERE slot = ?',
  );
  const save = store.prepare<unknown, [bigint, number]>('INSERT OR REPLACE INTO block_times VALUES (?, ?)');
  return {
    find: (slot) => find.get(slot)?.unix_seconds,
    save: (slot, unixSeconds) => void save.run(slot, unixSeconds),
  };
}
