import { type Address, address } from '@solana/kit';
import type { Store } from '../../shared/store/open.ts';
import { createHistory } from '../programs/history.ts';
import { createAbandon } from '../outbox/abandon.ts';
import type { DeploySlots } from '../watch/change.ts';
import { deploySlotOf } from '../watch/program-state.ts';
import type { Latest } from '../watch/watcher.ts';

export type Readings = Readonly<{
  /**
   * Puts a reading in the place of the one before, in one IMMEDIATE transaction. When `genesisHash` is not the stored
   * one, the reading before, all block times and all events that wait for theirs are another chain's: they are
   * forgotten in the same transaction. Otherwise `enqueue` adds to it what follows from the reading.
   */
  save(latest: Latest, genesisHash?: string, enqueue?: () => void): 'same-chain' | 'other-chain';
  /** The deploy slots of the stored reading; empty when there is none. */
  deploySlots(): DeploySlots;
}>;

type ProgramRow = {
  program: Address;
  status: string;
  upgradeAuthority: Address | null;
  deploySlot: bigint | null;
};

/** The last reading, kept over restarts in `store`. */
export function createReadings(store: Store): Readings {
  const note = store.prepare<unknown, { contextSlot: bigint; checkedAtMs: number }>(`
    INSERT INTO reading VALUES (1, $contextSlot, $checkedAtMs)
    ON CONFLICT (one) DO UPDATE SET context_slot = excluded.context_slot, checked_at_ms = excluded.checked_at_ms`);
  const clear = store.prepare('DELETE FROM programs');
  const put = store.prepare<unknown, ProgramRow>(
    'INSERT INTO programs VALUES ($program, $status, $upgradeAuthority, $deploySlot)',
  );
  const slots = store.prepare<{ program_id: string; deploy_slot: number }, []>(
    'SELECT program_id, deploy_slot FROM programs WHERE deploy_slot IS NOT NULL',
  );
  const genesis = store.prepare<{ genesis_hash: string }, []>('SELECT genesis_hash FROM chain');
  const putGenesis = store.prepare('INSERT OR REPLACE INTO chain VALUES (1, ?)');
  const clearTimes = store.prepare('DELETE FROM block_times');
  const abandon = createAbandon(store);
  const history = createHistory(store);

  /** Whether the store was of another chain; it is of `genesisHash` then. */
  function moveTo(genesisHash: string, nowMs: number): boolean {
    const stored = genesis.get()?.genesis_hash;
    if (stored === genesisHash) return false;
    putGenesis.run(genesisHash);
    if (stored === undefined) return false;
    clearTimes.run();
    history.forget();
    abandon(nowMs);
    return true;
  }

  const save = store.transaction((latest: Latest, genesisHash?: string, enqueue?: () => void) => {
    const { reading, checkedAtMs } = latest;
    const isOther = genesisHash !== undefined && moveTo(genesisHash, checkedAtMs);
    note.run({ contextSlot: reading.contextSlot, checkedAtMs });
    clear.run();
    for (const [program, state] of reading.programs) {
      const upgradeAuthority = state.status === 'upgradeable' ? state.upgradeAuthority : null;
      put.run({ program, status: state.status, upgradeAuthority, deploySlot: deploySlotOf(state) ?? null });
    }
    history.add(latest);
    if (isOther) return 'other-chain';
    enqueue?.();
    return 'same-chain';
  });
  return {
    save: (...args) => save.immediate(...args),
    deploySlots: () => new Map(slots.all().map((row) => [address(row.program_id), BigInt(row.deploy_slot)])),
  };
}
