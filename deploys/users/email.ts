import type { Brand } from '../../shared/brand.ts';

/**
 * An e-mail address as users are found by: A to Z in lower case. Other letters stay, because some of another script have an
 * ASCII letter as their lower case, and would make one address of two.
 */
export type Email = Brand<string, 'Email'>;

export const EMAIL_CHARACTERS_MAX = 254;
/** One @ with something before it and a dotted name after it; whether mail arrives there, no pattern can tell. */
const EMAIL = /^[^\s@\p{C}"<>]+@[^\s@.\p{C}"<>]+(?:\.[^\s@.\p{C}"<>]+)+$/u;

/** The address in `text`, or `undefined` when it is none. */
export function readEmail(text: string): Email | undefined {
  const email = text.trim().replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
  // The brand is this function's to give: the text was checked here.
  return email.length <= EMAIL_CHARACTERS_MAX && EMAIL.test(email) ? (email as Email) : undefined;
}
