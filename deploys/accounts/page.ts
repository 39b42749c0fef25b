/** Which part of a list is wanted: what has `search` in it, so many, behind the place that the part before ended with. */
export type PageWish<Place> = Readonly<{ search?: string; before?: Place; limit: number }>;

/** A part of a list. `next` is the place to go on from; `undefined` at the end. */
export type Page<Item, Place> = Readonly<{ items: readonly Item[]; next: Place | undefined }>;

type Source<Item, Place> = Readonly<{
  /** Reads up to `limit` items that are LIKE this. */
  read(like: string, limit: number): readonly Item[];
  placeOf(item: Item): Place;
}>;

/** Items of one page at most, whatever is asked for. */
const PAGE_MAX = 200;

/** Reads one page of `source`: one item more than is shown tells whether there is another page. */
export function pageOf<Item, Place>(
  { search = '', limit }: PageWish<Place>,
  { read, placeOf }: Source<Item, Place>,
): Page<Item, Place> {
  const shown = shownOf(limit);
  const found = read(likeOf(search), shown + 1);
  const items = found.slice(0, shown);
  const last = items.at(-1);
  return { items, next: found.length > shown && last !== undefined ? placeOf(last) : undefined };
}

/** How many items a page of this wish has at most. */
export function shownOf(limit: number): number {
  return Math.max(1, Math.min(limit, PAGE_MAX));
}

/** A LIKE pattern, escaped by a backslash, for texts with `search` in them. */
export function likeOf(search: string): string {
  return `%${search.replaceAll(/[\\%_]/g, '\\$&')}%`;
}
