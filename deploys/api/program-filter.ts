import { type Address, isAddress } from '@solana/kit';

/** Which programs a request asks for. */
export type ProgramFilter =
  | { readonly kind: 'all' }
  | { readonly kind: 'some'; readonly addresses: ReadonlySet<Address> }
  /** `value` is the first item that is no address, shortened for an error text. */
  | { readonly kind: 'malformed'; readonly value: string };

const PARAMETER = 'program_id';
/** Longer than any address, so that what was meant can still be recognised. */
const SHOWN_LENGTH_MAX = 64;

/**
 * The filter in a request's URL: every `program_id`, each a comma-separated list. Spaces around an item and empty
 * items are passed over, so a trailing comma or an empty parameter is as if it were not there. The length is bounded
 * by what the server takes as a request line.
 */
export function programFilterFrom(url: string): ProgramFilter {
  const query = url.indexOf('?');
  if (query === -1) return { kind: 'all' };
  const addresses = new Set<Address>();
  for (const list of new URLSearchParams(url.slice(query + 1)).getAll(PARAMETER)) {
    for (const item of list.split(',')) {
      const text = item.trim();
      if (text === '') continue;
      if (!isAddress(text)) return { kind: 'malformed', value: shortened(text) };
      addresses.add(text);
    }
  }
  return addresses.size === 0 ? { kind: 'all' } : { kind: 'some', addresses };
}

function shortened(text: string): string {
  return text.length <= SHOWN_LENGTH_MAX ? text : `${text.slice(0, SHOWN_LENGTH_MAX)}…`;
}
