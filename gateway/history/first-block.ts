import type { Backend } from '../upstream/backend.ts';
import { readWhole } from './answers.ts';
import { readSlots } from './block-list.ts';
import type { Passage } from './passage.ts';
import { joined, memberOf, numberIn } from './slices.ts';

/** How a backend is asked: live nodes without the long-term storage behind them. */
type Of = Readonly<{ backends: readonly Backend[]; localOnly: boolean }>;

/**
 * The first block at or after a slot that some backends have; `Infinity`: none; `undefined`: they do not say. From slot
 * 0 on it is what `getFirstAvailableBlock` would tell, for those that never told.
 */
export async function firstBlockFrom(
  { ask }: Passage,
  { backends, localOnly }: Of,
  slot: number,
): Promise<number | undefined> {
  const params = joined([`[${slot},1]`]);
  const list = await readSlots(
    ask(backends, { method: 'getBlocksWithLimit', params, localOnly, readable: true }),
  );
  if ('reply' in list || list.count > 1) return undefined;
  return list.count === 0 ? Infinity : list.last;
}

/**
 * Whether the chain has no block from slot `from` up to the first one that some backends have, which begin at `floor`:
 * that block names the one before it. What ends at a block and what begins at a block meet so, whatever was skipped
 * between them.
 */
export async function isSkipped(passage: Passage, of: Of, from: number, floor: number): Promise<boolean> {
  const first = await firstBlockFrom(passage, of, floor);
  if (first === undefined || first === Infinity) return false;
  const params = joined([`[${first},${HEAD_ONLY}]`]);
  const { backends, localOnly } = of;
  const reply = await readWhole(
    await passage.ask(backends, { method: 'getBlock', params, localOnly, readable: true }),
  );
  const result = reply.kind === 'whole' ? memberOf(reply.bytes, 'result') : undefined;
  const parent = result === undefined ? undefined : numberIn(memberOf(result, 'parentSlot'));
  return parent !== undefined && parent < from;
}

const HEAD_ONLY = '{"transactionDetails":"none","rewards":false,"maxSupportedTransactionVersion":0}';
