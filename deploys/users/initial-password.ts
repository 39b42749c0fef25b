/** Letters and digits that nobody takes for one another. */
const ALPHABET = 'abcdefghjkmnpqrstuvwxyz23456789A';
const [GROUPS, GROUP] = [4, 5];

/** A password for somebody's first login, 100 bits in groups of five: `k7m2p-…`. `random` gives n uniform bytes. */
export function makePassword(random: (bytes: number) => Uint8Array): string {
  // 32 letters: a byte's lower five bits are one of them, each as likely.
  const letters = [...random(GROUPS * GROUP)].map((byte) => ALPHABET[byte & 31]).join('');
  return Array.from({ length: GROUPS }, (_, i) => letters.slice(i * GROUP, (i + 1) * GROUP)).join('-');
}
