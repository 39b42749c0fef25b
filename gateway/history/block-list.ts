import type { Backend } from '../backend/backend.ts';
import type { Reply } from '../backend/forward.ts';
import { readWhole, resultAnswer, storageUnreachable } from './answers.ts';
import type { Passage } from './passage.ts';
import { elementsOf, isNull, joined, memberOf, membersOf } from './slices.ts';
import { topOf } from './tiers.ts';
import { isOver, verdictOf } from './verdict.ts';

/** Agave's bound on the slots of one `getBlocks` and `getBlocksWithLimit` (`rpc.rs`). */
export const RANGE_MAX = 500_000;

/**
 * How far above its floor a live node's blocks are left to an archive that has them: nodes clean up in steps, between
 * two probes too, and a list does not say what it lacks.
 */
const MARGIN_SLOTS = 1_024;

/** A list of slots of one tier: the text inside its brackets, how many there are and the last one. */
export type Slots = Readonly<{ inside: Uint8Array; count: number; last: number }>;

/** The first slot that the live nodes are asked for, when the archive has the ones before. */
export function seamOf(floor: number, archive: readonly Backend[]): number {
  return Math.max(floor, Math.min(floor + MARGIN_SLOTS, topOf(archive) + 1));
}

/** The config as archives take it: nothing but the commitment. */
export function commitmentOf(config: Uint8Array | undefined): readonly (string | Uint8Array)[] {
  const commitment = config === undefined ? undefined : memberOf(config, 'commitment');
  return commitment === undefined || isNull(commitment) ? [] : [',{"commitment":', commitment, '}'];
}

/** Whether a value is what may stand where a config stands. */
export function isConfig(json: Uint8Array | undefined): boolean {
  return json === undefined || isNull(json) || membersOf(json) !== undefined;
}

/** The live nodes have all of it; only when they fail is the archive asked. */
export async function hotThenArchive(passage: Passage, archiveParams: Uint8Array): Promise<Reply> {
  const { ask, tiers } = passage;
  const hot = await ask(tiers.hot);
  if (isOver(verdictOf(hot))) return hot;
  const archive = await ask(tiers.archive, { params: archiveParams });
  const { kind } = verdictOf(archive);
  return kind === 'found' || kind === 'caller-left' ? archive : hot;
}

/** The archive's own answer; when it has none, an error instead of a list that would look whole. */
export async function archiveAlone(
  { ask, call }: Passage,
  archives: readonly Backend[],
  params: Uint8Array,
): Promise<Reply> {
  const reply = await ask(archives, { params });
  const { kind } = verdictOf(reply);
  return kind === 'null' || kind === 'unreachable' ? storageUnreachable(call.id) : reply;
}

/** A tier's list, or the reply that stands for it. */
export async function readSlots(asked: Promise<Reply>): Promise<Slots | { readonly reply: Reply }> {
  const reply = await readWhole(await asked);
  if (reply.kind !== 'whole') return { reply };
  const list = memberOf(reply.bytes, 'result');
  const slots = list === undefined ? undefined : slotsIn(list);
  return slots ?? { reply };
}

function slotsIn(list: Uint8Array): Slots | undefined {
  const slots = elementsOf(list);
  if (slots === undefined) return undefined;
  const [first, last] = [slots[0], slots.at(-1)];
  if (first === undefined || last === undefined) return { inside: new Uint8Array(), count: 0, last: -1 };
  const inside = list.subarray(
    first.byteOffset - list.byteOffset,
    last.byteOffset - list.byteOffset + last.length,
  );
  return { inside, count: slots.length, last: Number(new TextDecoder().decode(last)) };
}

/** Two lists as one answer, every slot in its own bytes. */
export function concatenated(older: Slots, newer: Slots, id: Uint8Array): Reply {
  const comma = older.count > 0 && newer.count > 0 ? ',' : '';
  return resultAnswer(['[', older.inside, comma, newer.inside, ']'], id);
}

/** The archive's part of a list that cannot be told: its own error, or that it cannot be reached. */
export function failedPart(reply: Reply, id: Uint8Array): Reply {
  const { kind } = verdictOf(reply);
  return kind === 'null' || kind === 'unreachable' || kind === 'found' ? storageUnreachable(id) : reply;
}

/** `[FIRST,SECOND,CONFIG…]` in bytes. */
export function paramsFrom(
  first: Uint8Array | number,
  second: Uint8Array | number,
  config: readonly (string | Uint8Array)[],
): Uint8Array {
  const value = (part: Uint8Array | number) => (typeof part === 'number' ? String(part) : part);
  return joined(['[', value(first), ',', value(second), ...config, ']']);
}
