import type { SeenCall } from './backend.ts';
import { seeded } from './seeded.ts';

/** One transaction of the scripted chain. */
export type Transaction = Readonly<{
  signature: string;
  slot: number;
  index: number;
  addresses: readonly string[];
}>;

/** A chain that several scripted backends hold parts of: the same seed gives the same one. */
export type History = Readonly<{
  epochSlots: number;
  tip: number;
  /** Slots that have a block. */
  slots: readonly number[];
  /** Newest first. */
  transactions: readonly Transaction[];
}>;

type Shape = Readonly<{ seed: number; slots: number; epochSlots: number; addresses: readonly string[] }>;

/** The genesis hash of the scripted chain, in JSON. */
export const GENESIS = '"5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d"';

const ALPHABET = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';

/** Slots 1 to `slots`, every fifth or so skipped, up to three transactions a block, each of one or two addresses. */
export function createHistory({ seed, slots: count, epochSlots, addresses }: Shape): History {
  const random = seeded(seed);
  const pick = (below: number) => Math.floor(random() * below);
  const slots: number[] = [];
  const transactions: Transaction[] = [];
  for (let slot = 1; slot <= count; slot++) {
    if (slot > 1 && slot < count && pick(5) === 0) continue;
    slots.push(slot);
    for (let index = 0; index < pick(4); index++) {
      const signature = Array.from({ length: 88 }, () => ALPHABET[pick(ALPHABET.length)]).join('');
      const touched = new Set([
        addresses[pick(addresses.length)] ?? '',
        addresses[pick(addresses.length)] ?? '',
      ]);
      transactions.push({ signature, slot, index, addresses: [...touched] });
    }
  }
  return { epochSlots, tip: count, slots, transactions: transactions.toReversed() };
}

/** The slots that a backend holds, both ends included. */
export type Held = Readonly<{ floor: number; top: number }>;

export function holds({ floor, top }: Held, slot: number): boolean {
  return slot >= floor && slot <= top;
}

export function heldTransaction(history: History, held: Held, signature: unknown): Transaction | undefined {
  const found = history.transactions.find((transaction) => transaction.signature === signature);
  return found !== undefined && holds(held, found.slot) ? found : undefined;
}

/** The slots with a block in a range, ends included, as far as they are held. */
export function heldSlots({ slots }: History, held: Held, start: number, end: number): readonly number[] {
  return slots.filter((slot) => slot >= start && slot <= end && holds(held, slot));
}

/** Whether `a` stands further back in the chain than `b`. */
export function isOlder(a: Transaction, b: Transaction): boolean {
  return a.slot < b.slot || (a.slot === b.slot && a.index < b.index);
}

/** One row of `getSignaturesForAddress` in Agave's form; `extra` members go last. */
export function rowText({ signature, slot, index }: Transaction, extra = ''): string {
  // A memo with escapes and a float in the error show whether a row keeps its bytes.
  const memo = index === 0 ? '"[4] \\u0041\\/b"' : 'null';
  const err = index === 1 ? '{"InstructionError":[1e0,{"Custom":18446744073709551615}]}' : 'null';
  return `{"blockTime":${timeOf(slot)},"confirmationStatus":"finalized","err":${err},"memo":${memo},"signature":"${signature}","slot":${slot}${extra}}`;
}

export function timeOf(slot: number): number {
  return 1_700_000_000 + Math.floor(slot * 0.4);
}

/** A block in Agave's form; its parent is the newest block before it, which skipped slots do not change. */
function blockText(history: History, slot: number): string {
  const signatures = history.transactions.filter((each) => each.slot === slot).map((each) => each.signature);
  const parent = history.slots.findLast((each) => each < slot) ?? 0;
  return `{"blockHeight":${slot},"blockTime":${timeOf(slot)},"blockhash":"b${slot}","parentSlot":${parent},"signatures":${JSON.stringify(signatures)}}`;
}

function transactionText({ signature, slot, addresses }: Transaction, extra = ''): string {
  const message = JSON.stringify({ accountKeys: addresses });
  return `{"blockTime":${timeOf(slot)},"meta":{"fee":18446744073709551615},"slot":${slot},"transaction":{"message":${message},"signatures":["${signature}"]},"version":0${extra}}`;
}

/** The config object of a call, wherever it stands. */
export function configOf({ params }: Pick<SeenCall, 'params'>): Readonly<Record<string, unknown>> {
  const config = Array.isArray(params) ? params.find(isObject) : undefined;
  return config ?? {};
}

/** The positional parameters of a call. */
export function valuesOf({ params }: Pick<SeenCall, 'params'>): readonly unknown[] {
  return Array.isArray(params) ? params : [];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** What a page of `getSignaturesForAddress` asks for. */
type PageAsk = Readonly<{ address: unknown; limit: number; before?: unknown; until?: unknown }>;

/** The page, or the cursor that is not known. */
type AgavePage =
  | { readonly kind: 'rows'; readonly rows: readonly Transaction[] }
  | { readonly kind: 'unknown'; readonly cursor: unknown };

/**
 * A page as Agave makes it of the slots it holds (`blockstore.rs` get_confirmed_signatures_for_address2): newest first,
 * both cursors exclusive, any transaction may be one. A node before 4.0 gives an empty page for a `before` it does not
 * know and overlooks such an `until`; `strict` is 4.0.
 */
export function agavePage(history: History, held: Held, ask: PageAsk, strict: boolean): AgavePage {
  const [before, until] = [ask.before, ask.until].map((cursor) => heldTransaction(history, held, cursor));
  if (typeof ask.before === 'string' && before === undefined)
    return strict ? { kind: 'unknown', cursor: ask.before } : { kind: 'rows', rows: [] };
  if (strict && typeof ask.until === 'string' && until === undefined)
    return { kind: 'unknown', cursor: ask.until };
  const rows = history.transactions.filter(
    (each) =>
      each.addresses.some((address) => address === ask.address) &&
      each.slot >= held.floor &&
      each.slot <= held.top &&
      (before === undefined || isOlder(each, before)) &&
      (until === undefined || isOlder(until, each)),
  );
  return { kind: 'rows', rows: rows.slice(0, ask.limit) };
}

/**
 * The answer, in JSON, that every tier gives alike from the slots it holds; `undefined` for any other method. `extra`
 * members are those of a transaction.
 */
export function heldAnswer(
  call: SeenCall,
  history: History,
  held: Held,
  extra?: (transaction: Transaction) => string,
): string | undefined {
  const [first, second] = valuesOf(call);
  const slot = Number(first);
  switch (call.method) {
    case 'getBlock':
      return blockText(history, slot);
    case 'getBlockTime':
      return String(timeOf(slot));
    case 'getBlocks':
      return JSON.stringify(heldSlots(history, held, slot, typeof second === 'number' ? second : held.top));
    case 'getBlocksWithLimit':
      return JSON.stringify(heldSlots(history, held, slot, held.top).slice(0, Number(second)));
    case 'getTransaction': {
      const found = heldTransaction(history, held, first);
      return found === undefined ? 'null' : transactionText(found, extra?.(found));
    }
    default:
      return undefined;
  }
}
