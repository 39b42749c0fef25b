import type { Backend } from '../backend/backend.ts';
import type { Reply } from '../backend/forward.ts';
import { readWhole, resultAnswer, storageUnreachable } from './answers.ts';
import type { Passage } from './passage.ts';
import { elementsOf, isNull, joined, listed, memberOf, membersOf } from './slices.ts';
import { isOver, verdictOf } from './verdict.ts';

/** Agave's bound on the slots of one `getBlocks` and `getBlocksWithLimit` (`rpc.rs`). */
export const RANGE_MAX = 500_000;

/** A list of slots of one tier: the text inside its brackets, how many there are and the last one. */
export type Slots = Readonly<{ inside: Uint8Array; count: number; last: number }>;

/** The config as archives take it: nothing but the commitment. */
export function commitmentOf(config: Uint8Array | undefined): readonly (string | Uint8Array)[] {
  const commitment = config === undefined ? undefined : memberOf(config, 'commitment');
  return commitment === undefined || isNull(commitment) ? [] : [',{"commitment":', commitment, '}'];
}

/** The config as the caller wrote it. */
export function configPart(config: Uint8Array | undefined): readonly (string | Uint8Array)[] {
  return config === undefined ? [] : [',', config];
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

/** Lists as one answer, every slot in its own bytes. */
export function concatenated(lists: readonly Slots[], id: Uint8Array): Reply {
  const filled = lists.filter(({ count }) => count > 0).map(({ inside }) => inside);
  return resultAnswer(['[', ...listed(filled), ']'], id);
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
