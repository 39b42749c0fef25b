/*
 * Bytes read strictly: what ends too early or counts in a way that Solana's own reader would not is refused. LiteSVM
 * aborts the process on bytes that it cannot read, so nothing reaches it that was not read to the end here.
 */

/** Why bytes are no transaction, in the words of Rust's readers. */
export class MalformedWire extends Error {}

/** A cursor over bytes. Every method refuses by throwing MalformedWire, which `readTransaction` alone catches. */
export type WireReader = Readonly<{
  at(): number;
  byte(): number;
  bytes(length: number): Uint8Array;
  /** A compact-u16: at most three bytes, as few as possible. */
  count(): number;
  /** As many items as a count says. */
  list<Item>(read: () => Item): Item[];
}>;

/** Reads from the beginning. */
export function createWireReader(wire: Uint8Array): WireReader {
  let at = 0;

  function byte(): number {
    const value = wire[at];
    if (value === undefined) throw new MalformedWire('io error: unexpected end of file');
    at += 1;
    return value;
  }

  function bytes(length: number): Uint8Array {
    if (at + length > wire.length) throw new MalformedWire('io error: unexpected end of file');
    at += length;
    return wire.subarray(at - length, at);
  }

  function count(): number {
    let value = 0;
    for (let place = 0; place < 3; place += 1) {
      const part = byte();
      if (part === 0 && place > 0) throw new MalformedWire('invalid value: a length with a needless byte');
      value |= (part & 0x7f) << (7 * place);
      if (part < 0x80) {
        if (value > 0xffff) break;
        return value;
      }
    }
    throw new MalformedWire('invalid value: a length above u16');
  }

  function list<Item>(read: () => Item): Item[] {
    const length = count();
    const items: Item[] = [];
    for (let index = 0; index < length; index += 1) items.push(read());
    return items;
  }

  return { at: () => at, byte, bytes, count, list };
}
