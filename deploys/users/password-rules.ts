import COMMON from './common-passwords.json' with { type: 'json' };

/** Characters of a password, both included. The upper bound keeps a hash from becoming work for its own sake. */
export const PASSWORD_CHARACTERS = { min: 12, max: 100 } as const;

const common = new Set<string>(COMMON);

/** What is wrong with a new password of this user, in a sentence; `undefined` when nothing is. */
export function passwordComplaint(password: string, email: string): string | undefined {
  const { min, max } = PASSWORD_CHARACTERS;
  const characters = [...password].length;
  if (characters < min) return `A password has at least ${min} characters.`;
  if (characters > max) return `A password has at most ${max} characters.`;
  const plain = password.toLowerCase();
  if (plain === email || plain === email.split('@')[0]) return 'A password is not the e-mail address.';
  if (common.has(plain) || isOnePiece(plain))
    return 'This password is among the first that are guessed; choose another.';
  return undefined;
}

/** Whether the text is one short piece over and over: "aaaaaaaaaaaa", "abcabcabcabc". */
function isOnePiece(text: string): boolean {
  return /^(.{1,4}?)\1+.{0,3}$/su.test(text);
}
