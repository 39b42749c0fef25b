import type { ProgramShown } from '../../../programs/list.ts';
import { shortened } from '../../components/code.tsx';

/** Names addresses by a list of programs; one that is watched no longer is shortened. */
export function labelsOf(programs: readonly ProgramShown[]): (address: string) => string {
  const labels = new Map(programs.map(({ programId, label }) => [programId, label]));
  return (address) => labels.get(address) ?? shortened(address);
}
