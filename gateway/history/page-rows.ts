import type { Reply } from '../upstream/forward.ts';
import { failureOf } from '../upstream/failure.ts';
import { readWhole, resultAnswer } from './answers.ts';
import { elementsOf, listed, memberOf } from './slices.ts';

/** One row of a page: its own bytes, and what pages are put together by. */
export type Row = Readonly<{ bytes: Uint8Array; signature: string; slot: number }>;

/** A page as it was read. */
export type PageRead =
  | { readonly kind: 'rows'; readonly rows: readonly Row[]; readonly reply: Reply }
  /** An error of the method. */
  | { readonly kind: 'error'; readonly code: number; readonly reply: Reply }
  /** No page: no backend, a null, something else. */
  | { readonly kind: 'none'; readonly reply: Reply };

/** Reads a page to its end. Never rejects. */
export async function readPage(asked: Promise<Reply>): Promise<PageRead> {
  const reply = await readWhole(await asked);
  if (reply.kind !== 'whole') return { kind: 'none', reply };
  const list = memberOf(reply.bytes, 'result');
  const rows = list === undefined ? undefined : rowsIn(list);
  if (rows !== undefined) return { kind: 'rows', rows, reply };
  const code = failureOf(reply.bytes)?.code;
  return code === undefined ? { kind: 'none', reply } : { kind: 'error', code, reply };
}

function rowsIn(list: Uint8Array): readonly Row[] | undefined {
  const rows: Row[] = [];
  for (const bytes of elementsOf(list) ?? [NO_ROW]) {
    // The elements' grammar was checked. Parsed whole, because that is six times as fast as looking for two members.
    const { signature, slot }: { signature?: unknown; slot?: unknown } = Object(JSON.parse(latin1(bytes)));
    if (typeof signature !== 'string' || typeof slot !== 'number' || !Number.isSafeInteger(slot))
      return undefined;
    rows.push({ bytes, signature, slot });
  }
  return rows;
}

/** What stands for the rows of a list that is none. */
const NO_ROW = new TextEncoder().encode('null');

/** Signatures and slots are ASCII; what else is in a row is not read. */
function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
}

/** The rows as one page, each in the bytes it came in. */
export function pageOf(rows: readonly Row[], id: Uint8Array): Reply {
  return resultAnswer(['[', ...listed(rows.map(({ bytes }) => bytes)), ']'], id);
}
