/** A random UUID (RFC 9562, version 4) in its usual spelling. `random` gives n uniform bytes. */
export function uuidFrom(random: (bytes: number) => Uint8Array): string {
  const bytes = Buffer.from(random(16));
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40; // the version
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80; // the variant
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
