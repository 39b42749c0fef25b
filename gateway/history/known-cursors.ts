import { readWhole } from './answers.ts';
import type { PageParams } from './page-params.ts';
import type { Passage } from './passage.ts';
import { elementsOf, joined, memberOf, numberIn } from './slices.ts';

/** The slots of those of the two cursors that every live node has, in its own storage. */
export type KnownCursors = Readonly<{ before: number | undefined; until: number | undefined }>;

/**
 * Finds by one `getSignatureStatuses` which cursors of a page the live nodes know; `undefined` when they do not say.
 * A cursor below `floor`, the highest of theirs, counts as unknown: the node that gave the page need not be the one
 * that knows it.
 */
export async function findCursors(
  { ask, tiers }: Passage,
  { before, until }: PageParams,
  floor: number,
): Promise<KnownCursors | undefined> {
  const asked = [before, until].flatMap((signature) => (signature === undefined ? [] : [signature]));
  const params = joined(['[', JSON.stringify(asked), ',{"searchTransactionHistory":true}]']);
  const reply = await readWhole(
    await ask(tiers.live, { method: 'getSignatureStatuses', params, localOnly: true, readable: true }),
  );
  const result = reply.kind === 'whole' ? memberOf(reply.bytes, 'result') : undefined;
  const value = result === undefined ? undefined : memberOf(result, 'value');
  const statuses = value === undefined ? undefined : elementsOf(value);
  if (statuses?.length !== asked.length) return undefined;
  const slots = statuses.map((status) => {
    const slot = numberIn(memberOf(status, 'slot'));
    return slot !== undefined && slot >= floor ? slot : undefined;
  });
  return {
    before: before === undefined ? undefined : slots[0],
    until: until === undefined ? undefined : slots.at(-1),
  };
}
