/** One account or key as it is published. Instants are Unix milliseconds. */
export type PublishedRow =
  | Readonly<{
      kind: 'account';
      id: number;
      plan: string | null;
      creditsGranted: number | null;
      suspended: boolean;
    }>
  /** `hash` is the SHA-256 of the key in hex. */
  | Readonly<{
      kind: 'key';
      id: string;
      hash: string;
      accountId: number;
      expiresAtMs: number | null;
      revokedAtMs: number | null;
    }>
  /** It is no longer in the database at all. */
  | Readonly<{ kind: 'gone'; subject: 'account' | 'key'; id: string }>;

/** The row as text, about 130 bytes for a key. */
export function rowText(row: PublishedRow): string {
  switch (row.kind) {
    case 'account':
      return JSON.stringify(['a', row.id, row.plan, row.creditsGranted, row.suspended ? 1 : 0]);
    case 'key':
      return JSON.stringify(['k', row.id, row.hash, row.accountId, row.expiresAtMs, row.revokedAtMs]);
    case 'gone':
      return JSON.stringify(['g', row.subject, row.id]);
  }
}

/** Reads such a text; `undefined` for one that a later version wrote. */
export function rowFrom(text: string): PublishedRow | undefined {
  const words = wordsIn(text);
  const [kind, first, second, third, fourth, fifth] = words;
  if (kind === 'a' && isNumber(first) && isNullOr(isText, second) && isNullOr(isNumber, third))
    return { kind: 'account', id: first, plan: second, creditsGranted: third, suspended: fourth === 1 };
  if (kind === 'g' && (first === 'account' || first === 'key') && isText(second))
    return { kind: 'gone', subject: first, id: second };
  if (kind !== 'k' || !isText(first) || !isText(second) || !isNumber(third)) return undefined;
  if (!isNullOr(isNumber, fourth) || !isNullOr(isNumber, fifth)) return undefined;
  return { kind: 'key', id: first, hash: second, accountId: third, expiresAtMs: fourth, revokedAtMs: fifth };
}

function wordsIn(text: string): readonly unknown[] {
  try {
    const words: unknown = JSON.parse(text);
    return Array.isArray(words) ? words : [];
  } catch {
    return [];
  }
}

function isNullOr<T>(is: (word: unknown) => word is T, word: unknown): word is T | null {
  return word === null || is(word);
}

function isNumber(word: unknown): word is number {
  return typeof word === 'number';
}

function isText(word: unknown): word is string {
  return typeof word === 'string';
}
