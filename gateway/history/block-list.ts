import type { Backend } from '../upstream/backend.ts';
import type { Reply } from '../upstream/forward.ts';
import { readWhole, resultAnswer, storageUnreachable } from './answers.ts';
import type { Passage } from './passage.ts';
import { afterSpace, CLOSE_ARRAY, OPEN_ARRAY } from '../json/scan.ts';
import { isNull, joined, listed, memberOf, membersOf } from './slices.ts';
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

/** The live nodes have all of it; only when they fail are archives asked, where some have all of it too. */
export async function liveThenArchive(
  { ask }: Passage,
  backends: readonly Backend[],
  archives: readonly Backend[],
  archiveParams: Uint8Array,
): Promise<Reply> {
  const live = await ask(backends);
  if (isOver(verdictOf(live)) || archives.length === 0) return live;
  const archive = await ask(archives, { params: archiveParams });
  const { kind } = verdictOf(archive);
  return kind === 'found' || kind === 'caller-left' ? archive : live;
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
  return (reply.kind === 'whole' ? slotsIn(reply.bytes) : undefined) ?? { reply };
}

/**
 * The list of an answer, found by the first `"result"`, which no escaped id can spell, and counted by its commas: to
 * take half a million numbers apart would hold up every other call for a tenth of a second.
 */
function slotsIn(answer: Uint8Array<ArrayBuffer>): Slots | undefined {
  const named = Buffer.from(answer.buffer, answer.byteOffset, answer.length).indexOf(RESULT);
  const colon = afterSpace(answer, named + RESULT.length);
  const open = afterSpace(answer, colon + 1);
  if (named === -1 || answer[colon] !== COLON || answer[open] !== OPEN_ARRAY) return undefined;
  let commas = 0;
  let last = 0;
  for (let i = open + 1; ; i++) {
    const byte = answer[i] ?? 0;
    if (byte >= ZERO && byte <= NINE) last = last * 10 + byte - ZERO;
    else if (byte === COMMA) {
      commas++;
      last = 0;
    } else if (byte === CLOSE_ARRAY) {
      const inside = answer.subarray(open + 1, i);
      return commas === 0 && afterSpace(answer, open + 1) === i
        ? { inside, count: 0, last: -1 }
        : { inside, count: commas + 1, last };
    } else if (afterSpace(answer, i) === i) return undefined;
  }
}

const RESULT = Buffer.from('"result"');
const COLON = 0x3a;
const COMMA = 0x2c;
const ZERO = 0x30;
const NINE = 0x39;

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
