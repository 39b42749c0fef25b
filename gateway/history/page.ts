import { PROFILES } from '../../shared/config/profiles.ts';
import type { Backend } from '../upstream/backend.ts';
import { failureOf } from '../upstream/failure.ts';
import type { Reply } from '../upstream/forward.ts';
import { type Changes, type HistoryRequest, resultOf } from './request.ts';
import {
  elementsOf,
  isNull,
  joined,
  listed,
  type Member,
  memberOf,
  membersOf,
  numberIn,
  textIn,
} from '../json/slices.ts';
import type { ArchiveRange } from './tiers.ts';

/** Well-formed parameters of `getSignaturesForAddress`. */
export type PageParams = Readonly<{
  address: Uint8Array;
  limit: number;
  before: string | undefined;
  until: string | undefined;
  commitment: Uint8Array | undefined;
  /** The config's members in the caller's bytes. */
  members: readonly Member[];
}>;

/** Agave's bound and default (`rpc.rs`). */
const LIMIT_MAX = 1_000;

/** `undefined`: a node must refuse the parameters. */
export function pageParamsOf(params: Uint8Array | undefined): PageParams | undefined {
  const [address, config, ...more] = elementsOf(params ?? new Uint8Array()) ?? [];
  if (address === undefined || textIn(address) === undefined || more.length > 0) return undefined;
  const members = config === undefined || isNull(config) ? [] : membersOf(config);
  if (members === undefined) return undefined;
  const given = new Map(
    members.filter(({ value }) => !isNull(value)).map(({ name, value }) => [name, value]),
  );
  const [limitText, beforeText, untilText] = ['limit', 'before', 'until'].map((name) => given.get(name));
  const limit = limitText === undefined ? LIMIT_MAX : numberIn(limitText);
  const before = beforeText && textIn(beforeText);
  const until = untilText && textIn(untilText);
  if (limit === undefined || limit < 1 || limit > LIMIT_MAX) return undefined;
  if ((beforeText && before === undefined) || (untilText && until === undefined)) return undefined;
  return { address, limit, before, until, commitment: given.get('commitment'), members };
}

/** The caller's parameters without `until`. */
export function withoutUntil({ address, members }: PageParams): Uint8Array {
  const kept = members.filter(({ name }) => name !== 'until').map(({ whole }) => whole);
  return joined(['[', address, ',{', ...listed(kept), '}]']);
}

/** One row of a page: its own bytes, and what pages are joined by. */
export type Row = Readonly<{ bytes: Uint8Array; signature: string; slot: number }>;

/** A page of one backend. */
type PageRead =
  | { readonly kind: 'rows'; readonly rows: readonly Row[]; readonly reply: Reply }
  /** An error of the method; `none` is no answer, a null, something else. */
  | { readonly kind: 'unknown-cursor' | 'no-history' | 'error' | 'none'; readonly reply: Reply };

/** Agave since 4.0. */
const UNKNOWN_CURSOR = -32020;
const NO_HISTORY = -32011;

export async function readPage(
  { read }: HistoryRequest,
  backends: readonly Backend[],
  changes: Changes,
): Promise<PageRead> {
  const reply = await read(backends, changes);
  const list = resultOf(reply);
  const rows = list === undefined ? undefined : rowsIn(list);
  if (rows !== undefined) return { kind: 'rows', rows, reply };
  const code = reply.kind === 'whole' ? failureOf(reply.bytes)?.code : undefined;
  if (code === undefined) return { kind: 'none', reply };
  if (code === UNKNOWN_CURSOR) return { kind: 'unknown-cursor', reply };
  return { kind: code === NO_HISTORY ? 'no-history' : 'error', reply };
}

function rowsIn(list: Uint8Array): readonly Row[] | undefined {
  const rows: Row[] = [];
  const elements = elementsOf(list);
  for (const bytes of elements ?? []) {
    // Signatures and slots are ASCII. Parsed whole, because that is six times as fast as looking for two members.
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
    const { signature, slot }: { signature?: unknown; slot?: unknown } = Object(JSON.parse(text));
    if (typeof signature !== 'string' || typeof slot !== 'number' || !Number.isSafeInteger(slot))
      return undefined;
    rows.push({ bytes, signature, slot });
  }
  return elements && rows;
}

/** What some backends know of a cursor. */
export type CursorRead =
  /** `isOwn`: the address is in the transaction, so it is among its rows. Agave takes any other one as a slot. */
  | { readonly kind: 'known'; readonly slot: number; readonly isOwn: boolean }
  | { readonly kind: 'unknown' }
  /** They do not answer. */
  | { readonly kind: 'unavailable' };

/** Finds the slot of a cursor by its transaction. */
export async function readCursor(
  { read }: HistoryRequest,
  backends: readonly Backend[],
  signature: string,
  address: Uint8Array,
): Promise<CursorRead> {
  const config = '{"encoding":"json","maxSupportedTransactionVersion":255}';
  const params = joined([`[${JSON.stringify(signature)},${config}]`]);
  const result = resultOf(await read(backends, { method: 'getTransaction', params }));
  if (result === undefined) return { kind: 'unavailable' };
  if (isNull(result)) return { kind: 'unknown' };
  const slot = numberIn(memberOf(result, 'slot'));
  if (slot === undefined) return { kind: 'unavailable' };
  const paths = [
    ['transaction', 'message', 'accountKeys'],
    ['meta', 'loadedAddresses'],
  ];
  const lists = paths.map((path) => memberAt(result, path));
  const own = JSON.stringify(textIn(address));
  return { kind: 'known', slot, isOwn: lists.some((list) => list && Buffer.from(list).includes(own)) };
}

function memberAt(json: Uint8Array, names: readonly string[]): Uint8Array | undefined {
  return names.reduce<Uint8Array | undefined>((outer, name) => outer && memberOf(outer, name), json);
}

/** Rows of slots below `slot` only, which a newer range has down to this cursor or, without one, to this slot. */
export type Below = Readonly<{ signature: string | undefined; slot: number }>;

/** Rows that are wanted of archives; without `below` they begin at the caller's own `before` or at the newest one. */
export type WantedRows = Readonly<{ page: PageParams; below: Below | undefined; limit: number }>;

/** Why archives give no rows. */
export type ArchiveFailure =
  /** They do not know a cursor of the caller's. */
  | { readonly kind: 'unknown-cursor'; readonly reply: Reply }
  /** They could not answer, or not within a bound of pages. */
  | { readonly kind: 'failed' };

/** The rows of a page that archives of one range have. */
export type ArchiveRows =
  | ArchiveFailure
  | {
      readonly kind: 'rows';
      readonly rows: readonly Row[];
      /** `until` is right below them: no archive has older ones. */
      readonly ended: boolean;
      /** The archives showed that they have rows above those wanted too, so nothing is missing between the two. */
      readonly overlaps: boolean;
    };

/** Rows above those wanted are dropped page by page; a busy address must not take more of them. */
const PAGES_MAX = 10;
const PAGE_ROWS = 1_000;

/** Reads pages of archives that are alike until there are rows enough or no more. */
export async function readArchive(
  request: HistoryRequest,
  range: ArchiveRange,
  { page, below: given, limit }: WantedRows,
): Promise<ArchiveRows> {
  const { ordered, untilInclusive } = PROFILES[range.profile].pages;
  const rows: Row[] = [];
  let below = given;
  let overlaps = false;
  let { isExact, ...cursor } = firstCursor(range, page, below);
  for (let n = 0; n < PAGES_MAX; n++) {
    const pageLimit = isExact ? limit - rows.length : PAGE_ROWS;
    const params = archivePageParams(page, pageLimit, cursor);
    const read = await readPage(request, range.backends, { params });
    const { before } = cursor;
    const belowSlot = below?.slot ?? Infinity;
    // Old Faithful gives no row for a `before` that is none of the address's.
    const isUnmet =
      untilInclusive &&
      before !== undefined &&
      before === page.before &&
      read.kind === 'rows' &&
      read.rows.length === 0;
    if (read.kind === 'rows' && !isUnmet) {
      // Where runs of epochs come in any order, only slots tell what is newer.
      const sorted = ordered ? read.rows : read.rows.toSorted((a, b) => b.slot - a.slot);
      const { taken, ended } = wantedOf(sorted, belowSlot, page.until, rows);
      rows.push(...taken);
      overlaps ||= sorted.some(({ slot }) => slot >= belowSlot);
      if (ended || rows.length >= limit || sorted.length < pageLimit)
        return { kind: 'rows', rows: rows.slice(0, limit), ended, overlaps };
      // A page without a wanted row shows that the archive reaches further up than was known: read long ones from here.
      isExact &&= taken.length > 0;
      cursor = { before: sorted.at(-1)?.signature, beforeSlot: undefined };
      continue;
    }
    if (isUnmet) {
      const knowing = below === undefined ? range.backends : request.tiers.live;
      const found = await readCursor(request, knowing, before, page.address);
      if (found.kind === 'unavailable') return { kind: 'failed' };
      if (found.kind === 'unknown') return { kind: 'unknown-cursor', reply: read.reply };
      if (found.isOwn) return { kind: 'rows', rows, ended: false, overlaps };
      below ??= { signature: before, slot: found.slot + 1 };
    } else if (read.kind !== 'unknown-cursor') return { kind: 'failed' };
    else if (before === undefined || before !== below?.signature)
      return { kind: 'unknown-cursor', reply: read.reply };
    // The archive does not know the cursor: from its newest row on, what is not below being dropped.
    isExact = false;
    cursor = { before: undefined, beforeSlot: undefined };
  }
  return { kind: 'failed' };
}

/** Where a page of an archive begins: below a row, or below a slot. */
type Cursor = Readonly<{ before: string | undefined; beforeSlot: number | undefined }>;

/** How to tell the archive where to begin; `isExact`: its page has no row that will be dropped. */
function firstCursor(
  { profile, last }: ArchiveRange,
  { before }: PageParams,
  below: Below | undefined,
): Cursor & Readonly<{ isExact: boolean }> {
  if (below === undefined) return { before, beforeSlot: undefined, isExact: true };
  const { slot, signature } = below;
  if (PROFILES[profile].pages.beforeSlot) return { before: undefined, beforeSlot: slot, isExact: true };
  const isBelow = last !== undefined && last < slot;
  if (last === undefined || isBelow || signature === undefined)
    return { before: undefined, beforeSlot: undefined, isExact: isBelow };
  return { before: signature, beforeSlot: undefined, isExact: true };
}

/** `[ADDRESS,{limit,before?,beforeSlot?,until?,commitment?}]`, the address and commitment in the caller's bytes. */
function archivePageParams(
  { address, commitment, until }: PageParams,
  limit: number,
  { before, beforeSlot }: Cursor,
): Uint8Array {
  return joined([
    '[',
    address,
    `,{"limit":${limit}`,
    before === undefined ? '' : `,"before":${JSON.stringify(before)}`,
    beforeSlot === undefined ? '' : `,"beforeSlot":${beforeSlot}`,
    until === undefined ? '' : `,"until":${JSON.stringify(until)}`,
    ...(commitment === undefined ? [] : [',"commitment":', commitment]),
    '}]',
  ]);
}

/** The rows of a page that are wanted and are not `had`; `ended` when `until` was among them. */
function wantedOf(
  page: readonly Row[],
  belowSlot: number,
  until: string | undefined,
  had: readonly Row[],
): Readonly<{ taken: readonly Row[]; ended: boolean }> {
  const end = until === undefined ? -1 : page.findIndex(({ signature }) => signature === until);
  const newer = end === -1 ? page : page.slice(0, end);
  const seen = new Set(had.map(({ signature }) => signature));
  const taken = newer.filter(({ signature, slot }) => {
    if (seen.has(signature) || slot >= belowSlot) return false;
    seen.add(signature);
    return true;
  });
  return { taken, ended: end !== -1 };
}
