/** Keys that are told to be revoked ahead of their rows; the newest, when there are more. About 30 bytes each. */
export const REVOKED_MAX = 1_000;

/** Their ids as `revoked` of the head has them. */
export function revokedText(keyIds: readonly string[]): string {
  return keyIds.join(' ');
}

/** Reads such a text. */
export function revokedFrom(text: string | undefined): ReadonlySet<string> {
  return new Set(text === undefined || text === '' ? [] : text.split(' '));
}
