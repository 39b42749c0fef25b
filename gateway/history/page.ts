import { unreachable } from '../../shared/brand.ts';
import type { Backend } from '../upstream/backend.ts';
import { failureOf } from '../upstream/failure.ts';
import type { Reply } from '../upstream/forward.ts';
import { type Passage, readWhole, resultAnswer } from './request.ts';
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
} from './slices.ts';
import type { Span } from './tiers.ts';

/** What a well-formed `getSignaturesForAddress` asks for; strings as the caller wrote them. */
export type PageParams = Readonly<{
  address: Uint8Array;
  limit: number;
  before: string | undefined;
  until: string | undefined;
  commitment: Uint8Array | undefined;
  /** The config's members, for asking again with fewer of them. */
  members: readonly Member[];
}>;

/** Agave's bound and default (`rpc.rs`). */
const LIMIT_MAX = 1_000;

/** `undefined` when the node's own words about the parameters are due. */
export function pageParamsOf(params: Uint8Array | undefined): PageParams | undefined {
  const [address, config, ...more] = elementsOf(params ?? new Uint8Array()) ?? [];
  if (address === undefined || textIn(address) === undefined || more.length > 0) return undefined;
  const members = config === undefined || isNull(config) ? [] : membersOf(config);
  if (members === undefined) return undefined;
  const given = new Map(
    members.filter(({ value }) => !isNull(value)).map(({ name, value }) => [name, value]),
  );
  const limit = given.has('limit') ? numberIn(given.get('limit')) : LIMIT_MAX;
  const before = cursorIn(given.get('before'));
  const until = cursorIn(given.get('until'));
  if (limit === undefined || limit < 1 || limit > LIMIT_MAX) return undefined;
  if (before === MALFORMED || until === MALFORMED) return undefined;
  return { address, limit, before, until, commitment: given.get('commitment'), members };
}

/** The caller's parameters without `until`. */
export function withoutUntil({ address, members }: PageParams): Uint8Array {
  const kept = members.filter(({ name }) => name !== 'until').map(({ whole }) => whole);
  return joined(['[', address, ',{', ...listed(kept), '}]']);
}

/** What an archive is asked for; `beforeSlot` gives rows of earlier slots only. */
type ArchiveAsk = Readonly<{
  limit: number;
  before: string | undefined;
  beforeSlot: number | undefined;
  until: string | undefined;
}>;

/** `[ADDRESS,{limit,before?,beforeSlot?,until?,commitment?}]`, the address and commitment in the caller's bytes. */
function archivePageParams(
  { address, commitment }: PageParams,
  { limit, before, beforeSlot, until }: ArchiveAsk,
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

const MALFORMED: unique symbol = Symbol('not a signature');

function cursorIn(json: Uint8Array | undefined): string | undefined | typeof MALFORMED {
  return json === undefined ? undefined : (textIn(json) ?? MALFORMED);
}

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

/** Where an archive's part of a page begins. */
export type From =
  /** At the caller's own `before`, or at the newest row. */
  | { readonly kind: 'caller' }
  /** Below a row or cursor of a newer tier, which has every row from its slot on. */
  | { readonly kind: 'below'; readonly signature: string | undefined; readonly slot: number };

/** The rows of a page that an archive has. */
export type SpanRows =
  | {
      readonly kind: 'rows';
      readonly rows: readonly Row[];
      /** There are no older ones to be asked for elsewhere. */
      readonly ended: boolean;
      /** It showed that it has something of what is above its part too, so nothing is missing between the two. */
      readonly overlaps: boolean;
    }
  /** It does not know a cursor of the caller's. */
  | { readonly kind: 'unknown-cursor'; readonly reply: Reply }
  | { readonly kind: 'caller-left'; readonly reply: Reply }
  /** It could not answer, or not within a bound of pages. */
  | { readonly kind: 'failed' };

/** An archive's rows above a seam are thrown away page by page; a busy address must not take more of them. */
const PAGES_MAX = 10;
const PAGE_ROWS = 1_000;
const UNKNOWN_CURSOR = -32020;

/** What is read: at most `limit` rows of a page from archives that are alike. */
type Walk = Readonly<{
  passage: Passage;
  span: Span;
  asked: PageParams;
  from: From;
  limit: number;
}>;

/** How far a walk has come. */
type Place = Readonly<{
  from: From;
  /** How the archive is told where its next page begins. */
  before: string | undefined;
  beforeSlot: number | undefined;
  /** Whether that page has no row that must be dropped, so that it need not be longer than what is left. */
  exact: boolean;
  rows: readonly Row[];
  overlaps: boolean;
}>;

/** The end of a walk, or the place of its next page. */
type Step = SpanRows | { readonly kind: 'on'; readonly at: Place };

/** Reads pages of archives that are alike until there are rows enough or no more. */
export async function walk(given: Walk): Promise<SpanRows> {
  let at = placeFrom(given);
  for (let page = 0; page < PAGES_MAX; page++) {
    const next = await step(given, at);
    if (next.kind !== 'on') return next;
    at = next.at;
  }
  return { kind: 'failed' };
}

/** Reads one page. */
async function step(given: Walk, at: Place): Promise<Step> {
  const { passage, span, asked, limit } = given;
  const { before, beforeSlot } = at;
  const pageLimit = at.exact ? limit - at.rows.length : PAGE_ROWS;
  const params = archivePageParams(asked, { limit: pageLimit, before, beforeSlot, until: asked.until });
  const read = await readPage(passage.ask(span.backends, { params, readable: true }));
  if (read.kind !== 'rows') {
    const isOurs = at.from.kind === 'below' && before !== undefined && before === at.from.signature;
    // Its known top was further than its index: what the live nodes have is dropped instead.
    return isOurs && isUnknownCursor(read) ? fromTop(at, at.from) : failureFrom(read);
  }
  const { untilInclusive } = span.profile.pages;
  if (read.rows.length === 0 && untilInclusive && before !== undefined && before === asked.before)
    return afterUnmet(given, at, before, read.reply);
  return afterPage(given, at, read.rows, pageLimit);
}

/** An empty page leaves it open whether the archive met `before` at all. */
async function afterUnmet(given: Walk, at: Place, before: string, reply: Reply): Promise<Step> {
  const { passage, span, asked } = given;
  const knowing = at.from.kind === 'below' ? passage.tiers.live : span.backends;
  const place = await placeOf(passage, knowing, before, asked.address);
  switch (place.kind) {
    case 'own':
      return { kind: 'rows', rows: [], ended: false, overlaps: at.overlaps };
    case 'foreign':
      return fromTop(
        at,
        at.from.kind === 'below' ? at.from : { kind: 'below', signature: before, slot: place.slot + 1 },
      );
    case 'unknown':
      return { kind: 'unknown-cursor', reply };
    case 'untold':
      return { kind: 'failed' };
    default:
      return unreachable(place);
  }
}

/** Takes what belongs to the answer out of a page. */
function afterPage({ span, asked, limit }: Walk, at: Place, page: readonly Row[], pageLimit: number): Step {
  const sorted = span.profile.pages.ordered ? page : page.toSorted((a, b) => b.slot - a.slot);
  const { taken, ended } = take(sorted, at.from, asked.until, at.rows);
  const rows = [...at.rows, ...taken].slice(0, limit);
  const overlaps = at.overlaps || isAbove(sorted, at);
  if (ended || rows.length === limit || sorted.length < pageLimit)
    return { kind: 'rows', rows, ended, overlaps };
  // A page without a row of the answer: it reaches further up than was known, and short ones would be dropped one by one.
  const exact = at.exact && taken.length > 0;
  const before = sorted.at(-1)?.signature;
  return { kind: 'on', at: { from: at.from, before, beforeSlot: undefined, exact, rows, overlaps } };
}

function isAbove(page: readonly Row[], { from }: Place): boolean {
  return from.kind === 'below' && page.some(({ slot }) => slot >= from.slot);
}

/** Once more from the archive's top, what is not below `from` being dropped. */
function fromTop({ beforeSlot, rows, overlaps }: Place, from: From): Step {
  return { kind: 'on', at: { from, before: undefined, beforeSlot, exact: false, rows, overlaps } };
}

/** How to say where to begin to this archive. */
function placeFrom({ from, asked, span: { profile, top } }: Walk): Place {
  const at = { from, before: undefined, beforeSlot: undefined, exact: true, rows: [], overlaps: false };
  if (from.kind === 'caller') return { ...at, before: asked.before };
  if (profile.pages.beforeSlot) return { ...at, beforeSlot: from.slot };
  if (top >= from.slot && from.signature !== undefined) return { ...at, before: from.signature };
  return { ...at, exact: top !== 0 && top < from.slot };
}

/** The rows of a page that belong to the answer and are not in it yet; `ended` when `until` was among them. */
function take(page: readonly Row[], from: From, until: string | undefined, had: readonly Row[]) {
  const end = until === undefined ? -1 : page.findIndex(({ signature }) => signature === until);
  const newer = end === -1 ? page : page.slice(0, end);
  const seen = new Set(had.map(({ signature }) => signature));
  const taken = newer.filter(({ signature, slot }) => {
    if (seen.has(signature) || (from.kind === 'below' && slot >= from.slot)) return false;
    seen.add(signature);
    return true;
  });
  return { taken, ended: end !== -1 };
}

function isUnknownCursor(read: PageRead): boolean {
  return read.kind === 'error' && read.code === UNKNOWN_CURSOR;
}

function failureFrom(read: Exclude<PageRead, { kind: 'rows' }>): SpanRows {
  const { reply } = read;
  if (reply.kind === 'caller-left') return { kind: 'caller-left', reply };
  return isUnknownCursor(read) ? { kind: 'unknown-cursor', reply } : { kind: 'failed' };
}
