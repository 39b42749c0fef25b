/** @jsxImportSource preact */
import type { ProgramShown } from '../../../programs/list.ts';
import { Badge, type Tone } from '../../components/icons.tsx';

type Status = NonNullable<ProgramShown['status']>;

/** What the last reading said of a program, with what it is called and how it looks. */
export const STATUS_WORDS: Readonly<Record<Status, readonly [text: string, tone: Tone]>> = {
  upgradeable: ['upgradeable', 'good'],
  frozen: ['frozen', 'quiet'],
  other_loader: ['other loader', 'accent'],
  missing: ['missing', 'bad'],
};

/** A program's status. */
export function StatusBadge({ status }: Readonly<{ status: ProgramShown['status'] }>) {
  if (status === undefined) return <Badge tone="waiting">not read yet</Badge>;
  const [text, tone] = STATUS_WORDS[status];
  return <Badge tone={tone}>{text}</Badge>;
}
