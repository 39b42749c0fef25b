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

/** Letters and digits that nobody takes for one another. */
const ALPHABET = 'abcdefghjkmnpqrstuvwxyz23456789A';
const [GROUPS, GROUP] = [4, 5];

/** A password for somebody's first login, 100 bits in groups of five: `k7m2p-…`. `random` gives n uniform bytes. */
export function makePassword(random: (bytes: number) => Uint8Array): string {
  // 32 letters: a byte's lower five bits are one of them, each as likely.
  const letters = [...random(GROUPS * GROUP)].map((byte) => ALPHABET[byte & 31]).join('');
  return Array.from({ length: GROUPS }, (_, i) => letters.slice(i * GROUP, (i + 1) * GROUP)).join('-');
}
