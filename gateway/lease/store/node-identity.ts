import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Lock, takeLock } from '../../../shared/store/lock.ts';
import type { Store } from '../../../shared/store/open.ts';
import type { NodeId } from '../messages.ts';

/** One gateway process on its data directory: nobody else is `id` while it holds the lock, and `fence` is its latest start. */
export type NodeIdentity = Readonly<{ id: NodeId; fence: number; lock: Lock }>;

export type TakingNode =
  | { readonly kind: 'taken'; readonly node: NodeIdentity }
  /** `sentence` tells the operator who has the slot, or which file is wrong. */
  | { readonly kind: 'refused'; readonly sentence: string };

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * Takes a process slot of `dataDir` (`gateway-1`, `gateway-2`, …) and gives the node that lives there: its UUID from
 * the file `SLOT.node`, made by `makeId` at the first start, and a fence above all earlier ones. Never throws.
 * The slot's journal belongs to the node, so the file is only deleted together with the ledger.
 */
export function takeNode(
  dataDir: string,
  slot: string,
  ledger: Store,
  nowMs: number,
  makeId: () => string,
): TakingNode {
  const locking = takeLock(dataDir, slot);
  if (locking.kind === 'refused') return locking;
  try {
    const id = nodeIdIn(join(dataDir, `${slot}.node`), makeId);
    return { kind: 'taken', node: { id, fence: nextFence(ledger, id, nowMs), lock: locking.lock } };
  } catch (error) {
    locking.lock.release();
    const reason = error instanceof Error ? error.message : String(error);
    return { kind: 'refused', sentence: `The node of ${slot} in ${dataDir} cannot be known (${reason}).` };
  }
}

function nodeIdIn(path: string, makeId: () => string): NodeId {
  const text = existingText(path) ?? newText(path, makeId());
  if (!UUID.test(text)) {
    throw new Error(
      `${path} does not hold a UUID; put it back from a backup, or delete it to start a new node`,
    );
  }
  return text as NodeId; // the pattern above is what a NodeId is
}

function existingText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Through a rename, so that a start that dies half-way leaves no half of an id. */
function newText(path: string, id: string): string {
  writeFileSync(`${path}.new`, `${id}\n`, { flush: true });
  renameSync(`${path}.new`, path);
  return id;
}

/**
 * The next fence of the node. It is at least the wall time, so that a ledger that was lost or put back from a backup
 * does not start below what a central store remembers of the node.
 */
function nextFence(ledger: Store, node: NodeId, nowMs: number): number {
  const row = ledger
    .prepare<{ fence: number }, [string, number]>(
      `
      INSERT INTO nodes (node, fence) VALUES (?, ?)
      ON CONFLICT (node) DO UPDATE SET fence = max(fence + 1, excluded.fence)
      RETURNING fence`,
    )
    .get(node, Math.floor(nowMs));
  if (row === null) throw new Error('the ledger gave no fence');
  return row.fence;
}
