import type { Backend } from '../upstream/backend.ts';
import { readWhole } from './answers.ts';
import type { Passage } from './passage.ts';
import { isNull, joined, memberOf, numberIn, textIn } from './slices.ts';

/** What a cursor is to the address whose rows are asked for. */
export type CursorPlace =
  /** A transaction of the address: it is among its rows. */
  | { readonly kind: 'own'; readonly slot: number }
  /** Another transaction, which Agave takes for a place in the chain all the same. */
  | { readonly kind: 'foreign'; readonly slot: number }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'untold' };

/** Finds the place of a cursor by its transaction, asked for from some backends. */
export async function placeOf(
  { ask }: Passage,
  backends: readonly Backend[],
  signature: string,
  address: Uint8Array,
): Promise<CursorPlace> {
  const params = joined([
    '[',
    JSON.stringify(signature),
    ',{"encoding":"json","maxSupportedTransactionVersion":255}]',
  ]);
  const reply = await readWhole(await ask(backends, { method: 'getTransaction', params, readable: true }));
  const result = reply.kind === 'whole' ? memberOf(reply.bytes, 'result') : undefined;
  if (result === undefined) return { kind: 'untold' };
  if (isNull(result)) return { kind: 'unknown' };
  const slot = numberIn(memberOf(result, 'slot'));
  const own = JSON.stringify(textIn(address));
  const lists = [
    within(result, 'transaction', 'message', 'accountKeys'),
    within(result, 'meta', 'loadedAddresses'),
  ];
  if (slot === undefined) return { kind: 'untold' };
  const isOwn = lists.some((list) => list !== undefined && Buffer.from(list).includes(own));
  return { kind: isOwn ? 'own' : 'foreign', slot };
}

function within(json: Uint8Array, ...names: readonly string[]): Uint8Array | undefined {
  return names.reduce<Uint8Array | undefined>(
    (outer, name) => (outer === undefined ? undefined : memberOf(outer, name)),
    json,
  );
}
