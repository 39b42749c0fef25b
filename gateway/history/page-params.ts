import { elementsOf, isNull, joined, listed, type Member, membersOf, numberIn, textIn } from './slices.ts';

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
export type ArchiveAsk = Readonly<{
  limit: number;
  before: string | undefined;
  beforeSlot: number | undefined;
  until: string | undefined;
}>;

/** `[ADDRESS,{limit,before?,beforeSlot?,until?,commitment?}]`, the address and commitment in the caller's bytes. */
export function archivePageParams(
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
