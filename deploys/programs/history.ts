import type { Address } from '@solana/kit';
import type { Store } from '../../shared/store/open.ts';
import { deploySlotOf } from '../watch/program-state.ts';
import type { Latest } from '../watch/watcher.ts';

/** A deploy of a program as it was first seen. Instants are Unix milliseconds. */
export type SeenDeploy = Readonly<{
  /** Grows with every deploy that is seen. */
  id: number;
  programId: string;
  deploySlot: number;
  /** The slot before it; `null` for the first that was seen of the program. */
  previousSlot: number | null;
  /** When the reading that saw it began; the first reading of all sees deploys of any age. */
  detectedAtMs: number;
  /** `null` while the time of its block is not known. */
  deployedAtMs: number | null;
  /** Who could upgrade the program then; `null` when nobody. */
  authority: string | null;
}>;

export type History = Readonly<{
  /** Adds what a reading says that is newer than what was seen, events or not; to be called in the reading's own transaction. */
  add(latest: Latest): void;
  /** Forgets everything: it was of another chain. */
  forget(): void;
  /** The newest first; `before` is the `id` of the last one of the page before. At most `PAGE_MAX`. */
  of(programId: string, page: Readonly<{ before?: number; limit: number }>): readonly SeenDeploy[];
}>;

/** Deploys that are kept of one program. */
const KEPT_MAX = 500;
const PAGE_MAX = 100;

type Deploy = Readonly<{ program: Address; slot: bigint; atMs: number; authority: Address | null }>;

/** The deploys that were seen, in `store`. */
export function createHistory(store: Store): History {
  const add = store.prepare<unknown, Deploy>(`
    INSERT INTO program_deploys (program_id, deploy_slot, previous_slot, detected_at_ms, authority)
    SELECT $program, $slot, last, $atMs, $authority FROM (SELECT
      (SELECT deploy_slot FROM program_deploys WHERE program_id = $program ORDER BY id DESC LIMIT 1) AS last)
    WHERE $slot > coalesce(last, -1)`);
  const prune = store.prepare<unknown, [string]>(`
    DELETE FROM program_deploys WHERE program_id = ?1 AND id <= (SELECT id FROM program_deploys
      WHERE program_id = ?1 ORDER BY id DESC LIMIT 1 OFFSET ${KEPT_MAX})`);
  const clear = store.prepare('DELETE FROM program_deploys');
  const page = store.prepare<SeenDeploy, [string, number, number]>(`
    SELECT id, program_id AS programId, deploy_slot AS deploySlot, previous_slot AS previousSlot,
      detected_at_ms AS detectedAtMs, unix_seconds * 1000 AS deployedAtMs, authority
    FROM program_deploys LEFT JOIN block_times ON slot = deploy_slot
    WHERE program_id = ? AND id < ? ORDER BY id DESC LIMIT ?`);

  return {
    add({ reading, checkedAtMs }) {
      for (const [program, state] of reading.programs) {
        const slot = deploySlotOf(state);
        if (slot === undefined) continue;
        const authority = state.status === 'upgradeable' ? state.upgradeAuthority : null;
        if (add.run({ program, slot, atMs: checkedAtMs, authority }).changes > 0) prune.run(program);
      }
    },
    forget: () => void clear.run(),
    of: (programId, { before = Number.MAX_SAFE_INTEGER, limit }) =>
      page.all(programId, before, Math.max(1, Math.min(limit, PAGE_MAX))),
  };
}
