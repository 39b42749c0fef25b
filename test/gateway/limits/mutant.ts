import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Authority } from './world.ts';

/** A fault planted in one file of the arithmetic: `from` stands in it once. */
export type Fault = Readonly<{
  file: 'authority' | 'authority-rate' | 'authority-credits';
  from: string;
  to: string;
}>;

const SOURCES = join(import.meta.dir, '../../../gateway/limits');
const FILES = ['authority', 'authority-rate', 'authority-credits', 'messages'];

/** The arithmetic with a fault. Its files import values of each other alone, so that copies of them run from anywhere. */
export async function authorityWith({ file, from, to }: Fault, folder: string): Promise<Authority> {
  const path = join(folder, Bun.hash(file + from + to).toString(36));
  mkdirSync(path);
  for (const name of FILES) {
    const source = await Bun.file(join(SOURCES, `${name}.ts`)).text();
    if (name === file && source.split(from).length !== 2)
      throw new Error(`${file}.ts does not hold once: ${from}`);
    const changed = name === file ? source.replace(from, () => to) : source;
    await Bun.write(join(path, `${name}.ts`), changed);
  }
  const { answer }: { answer: Authority } = await import(join(path, 'authority.ts'));
  return answer;
}
