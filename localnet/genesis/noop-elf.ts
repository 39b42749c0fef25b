/*
 * The smallest program that the loaders accept: an ELF64 shared object for SBPF v0 with one section of code,
 *
 *     mov64 r0, 0      success
 *     exit
 *
 * laid out as header, code, section names, section table. Real, so that a program of the localnet can be invoked,
 * and redeployed by the loader, which verifies what it is given.
 */

const HEADER_BYTES = 64;
const SECTION_BYTES = 64;
const CODE_OFFSET = HEADER_BYTES;
const SHT_PROGBITS = 1;
const SHT_STRTAB = 3;
const SHF_ALLOC_EXECINSTR = 6;
const ET_DYN = 3;
const EM_BPF = 247;

const SECTION_NAMES = new TextEncoder().encode('\0.text\0.shstrtab\0');

// prettier-ignore
const CODE = [
  0xb7, 0, 0, 0, 0, 0, 0, 0, // mov64 r0, 0
  0x95, 0, 0, 0, 0, 0, 0, 0, // exit
];

/**
 * The bytes of a program that does nothing and succeeds. `padding` bytes of dead code (rounded up to whole
 * instructions) follow its `exit`, so that two deploys can differ in length.
 */
export function noopElf(padding = 0): Uint8Array {
  const code = new Uint8Array(CODE.length + Math.ceil(padding / 8) * 8);
  code.set(CODE);
  for (let at = CODE.length; at < code.length; at += 8) code[at] = 0x95;
  const namesOffset = CODE_OFFSET + code.length;
  const sectionsOffset = Math.ceil((namesOffset + SECTION_NAMES.length) / 8) * 8;
  const elf = new Uint8Array(sectionsOffset + 3 * SECTION_BYTES);
  elf.set(code, CODE_OFFSET);
  elf.set(SECTION_NAMES, namesOffset);
  writeHeader(elf, sectionsOffset);
  const view = new DataView(elf.buffer);
  writeSection(view, sectionsOffset + SECTION_BYTES, 1, SHT_PROGBITS, [
    SHF_ALLOC_EXECINSTR,
    CODE_OFFSET,
    CODE_OFFSET,
    code.length,
  ]);
  writeSection(view, sectionsOffset + 2 * SECTION_BYTES, 7, SHT_STRTAB, [
    0,
    0,
    namesOffset,
    SECTION_NAMES.length,
  ]);
  return elf;
}

function writeHeader(elf: Uint8Array, sectionsOffset: number): void {
  const view = new DataView(elf.buffer);
  elf.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1]); // magic, 64-bit, little-endian, version 1
  view.setUint16(16, ET_DYN, true);
  view.setUint16(18, EM_BPF, true);
  view.setUint32(20, 1, true);
  view.setBigUint64(24, BigInt(CODE_OFFSET), true); // the entrypoint
  view.setBigUint64(40, BigInt(sectionsOffset), true);
  view.setUint16(52, HEADER_BYTES, true);
  view.setUint16(54, 56, true); // a program header's size; there are none
  view.setUint16(58, SECTION_BYTES, true);
  view.setUint16(60, 3, true); // null, .text, .shstrtab
  view.setUint16(62, 2, true); // the names are in the last one
}

/** `words` are its flags, address, offset and size. */
function writeSection(
  view: DataView,
  at: number,
  name: number,
  type: number,
  words: readonly number[],
): void {
  view.setUint32(at, name, true);
  view.setUint32(at + 4, type, true);
  for (const [i, word] of words.entries()) view.setBigUint64(at + 8 + 8 * i, BigInt(word), true);
  view.setBigUint64(at + 48, 8n, true);
}
