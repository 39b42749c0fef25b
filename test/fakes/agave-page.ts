import { type Held, heldTransaction, type History, isOlder, type Transaction } from './history.ts';

/** What a page of `getSignaturesForAddress` asks for. */
export type PageAsk = Readonly<{ address: unknown; limit: number; before?: unknown; until?: unknown }>;

/** The page, or the cursor that is not known. */
export type AgavePage =
  | { readonly kind: 'rows'; readonly rows: readonly Transaction[] }
  | { readonly kind: 'unknown'; readonly cursor: unknown };

/**
 * A page as Agave makes it of the slots it holds (`blockstore.rs` get_confirmed_signatures_for_address2): newest first,
 * both cursors exclusive, any transaction may be one. A node before 4.0 gives an empty page for a `before` it does not
 * know and overlooks such an `until`; `strict` is 4.0.
 */
export function agavePage(history: History, held: Held, ask: PageAsk, strict: boolean): AgavePage {
  const [before, until] = [ask.before, ask.until].map((cursor) => heldTransaction(history, held, cursor));
  if (isGiven(ask.before) && before === undefined) {
    return strict ? { kind: 'unknown', cursor: ask.before } : { kind: 'rows', rows: [] };
  }
  if (strict && isGiven(ask.until) && until === undefined) return { kind: 'unknown', cursor: ask.until };
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

function isGiven(cursor: unknown): boolean {
  return cursor !== undefined && cursor !== null;
}
