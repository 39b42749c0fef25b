import type { Reply } from '../backend/forward.ts';
import { failureOf } from '../backend/rpc-failure.ts';
import { readWhole, resultAnswer } from './answers.ts';
import { elementsOf, listed, memberOf, membersOf, numberIn, textIn } from './slices.ts';

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
  for (const bytes of elementsOf(list) ?? [NOTHING]) {
    const members = membersOf(bytes) ?? [];
    const value = (name: string) => members.find((member) => member.name === name)?.value;
    const signature = textIn(value('signature') ?? NOTHING);
    const slot = numberIn(value('slot'));
    if (signature === undefined || slot === undefined) return undefined;
    rows.push({ bytes, signature, slot });
  }
  return rows;
}

const NOTHING = new Uint8Array();

/** The rows as one page, each in the bytes it came in. */
export function pageOf(rows: readonly Row[], id: Uint8Array): Reply {
  return resultAnswer(['[', ...listed(rows.map(({ bytes }) => bytes)), ']'], id);
}
