import { elementsOf, joined, listed, membersOf } from './slices.ts';

/** What archives know of the configs of `getBlock` and `getTransaction`. */
const KNOWN = new Set([
  'encoding',
  'commitment',
  'transactionDetails',
  'rewards',
  'maxSupportedTransactionVersion',
]);

/**
 * The parameters with only those members of the config that archives know: Agave ignores any other, Superbank refuses
 * the call for it. Every byte left is the caller's own.
 */
export function paramsForArchive(params: Uint8Array | undefined): Uint8Array | undefined {
  const [first, config] = elementsOf(params ?? NOTHING) ?? [];
  const members = config === undefined ? undefined : membersOf(config);
  if (first === undefined || members === undefined) return params;
  const known = members.filter(({ name }) => KNOWN.has(name)).map(({ whole }) => whole);
  return known.length === members.length ? params : joined(['[', first, ',{', ...listed(known), '}]']);
}

const NOTHING = new Uint8Array();
