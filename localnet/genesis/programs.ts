import { isAddress } from '@solana/kit';

/** A program to exist from the start; other members of the list's entries are ignored. */
export type GenesisProgram = Readonly<{ program_id: string }>;

/** The programs of a parsed list. Throws an Error with a sentence that names the list and the entry at fault. */
export function programsFrom(list: unknown, name: string): readonly GenesisProgram[] {
  if (!Array.isArray(list)) throw new Error(`The list of programs ${name} is not a JSON array.`);
  const entries: readonly unknown[] = list;
  return entries.map((entry, index) => {
    const programId =
      typeof entry === 'object' && entry !== null && 'program_id' in entry ? entry.program_id : undefined;
    if (typeof programId === 'string' && isAddress(programId)) return { program_id: programId };
    throw new Error(`The list of programs ${name} has no address at entry ${index + 1} (program_id).`);
  });
}
