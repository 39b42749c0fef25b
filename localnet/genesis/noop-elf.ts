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
const PROGRAM_HEADER_BYTES = 56;
const SECTION_BYTES = 64;
const SHT_PROGBITS = 1;
const SHT_STRTAB = 3;
const SHF_ALLOC_EXECINSTR = 6;
const ET_DYN = 3;
const EM_BPF = 247;
const SECTION_NAMES = Buffer.from('\0.text\0.shstrtab\0');
const MOV64_R0_0 = 0xb7;
const EXIT = 0x95;

/**
 * The bytes of a program that does nothing and succeeds. `padding` bytes of dead code (rounded up to whole
 * instructions) follow its `exit`, so that two deploys can differ in length.
 */
export function noopElf(padding = 0): Uint8Array {
  const opcodes = [MOV64_R0_0, EXIT, ...Array<number>(Math.ceil(padding / 8)).fill(EXIT)];
  const code = u64s(...opcodes);
  const namesAt = HEADER_BYTES + code.length;
  const sectionsAt = Math.ceil((namesAt + SECTION_NAMES.length) / 8) * 8;
  const header = Buffer.concat([
    Uint8Array.of(0x7f, 0x45, 0x4c, 0x46, 2, 1, 1), // magic, 64-bit, little-endian, version 1
    new Uint8Array(9),
    u16s(ET_DYN, EM_BPF, 1, 0),
    u64s(HEADER_BYTES, 0, sectionsAt), // the entrypoint is the first instruction
    u16s(0, 0, HEADER_BYTES, PROGRAM_HEADER_BYTES, 0, SECTION_BYTES),
    u16s(3, 2), // null, .text, .shstrtab; the names are in the last one
  ]);
  const elf = new Uint8Array(sectionsAt + 3 * SECTION_BYTES);
  elf.set(header);
  elf.set(code, HEADER_BYTES);
  elf.set(SECTION_NAMES, namesAt);
  const text = [SHF_ALLOC_EXECINSTR, HEADER_BYTES, HEADER_BYTES, code.length];
  elf.set(section(1, SHT_PROGBITS, text), sectionsAt + SECTION_BYTES);
  elf.set(section(7, SHT_STRTAB, [0, 0, namesAt, SECTION_NAMES.length]), sectionsAt + 2 * SECTION_BYTES);
  return elf;
}

/** A row of the section table; `words` are its flags, address, offset and size. */
function section(name: number, type: number, words: readonly number[]): Uint8Array {
  return Buffer.concat([u16s(name, 0, type, 0), u64s(...words, 0, 8)]);
}

function u64s(...values: readonly number[]): Uint8Array {
  return new Uint8Array(BigUint64Array.from(values, BigInt).buffer);
}

function u16s(...values: readonly number[]): Uint8Array {
  return new Uint8Array(Uint16Array.from(values).buffer);
}
