import { join } from 'node:path';
import { type Centre, CENTRE } from './world.ts';

/** A fault planted in one file of the centre: `from` stands in it once. */
export type Fault = Readonly<{ file: 'centre-rate' | 'centre-credit'; from: string; to: string }>;

/** The centre with a fault. Its files import types alone, so that a changed copy runs from anywhere. */
export async function centreWith({ file, from, to }: Fault, folder: string): Promise<Centre> {
  const source = await Bun.file(join(import.meta.dir, '../../../gateway/lease', `${file}.ts`)).text();
  if (source.split(from).length !== 2) throw new Error(`${file}.ts does not hold once: ${from}`);
  const path = join(folder, `${file}-${Bun.hash(from + to).toString(36)}.ts`);
  await Bun.write(
    path,
    source.replace(from, () => to),
  );
  const mutated: Partial<Centre> = await import(path);
  return { ...CENTRE, ...pick(mutated) };
}

/** A module has other exports too. */
function pick({ topUpRate, topUpCredits, rateStateLifeMs }: Partial<Centre>): Partial<Centre> {
  return {
    ...(topUpRate && { topUpRate }),
    ...(topUpCredits && { topUpCredits }),
    ...(rateStateLifeMs && { rateStateLifeMs }),
  };
}
