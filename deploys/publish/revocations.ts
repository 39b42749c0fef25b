import type { Clock } from '../../shared/clock.ts';
import { REVOKED_MAX, revokedText } from '../../shared/publication/revoked.ts';
import type { Changes } from './changes.ts';
import type { RedisHead } from './redis-head.ts';

/** Revocations told ahead of their rows: a key must end within a second, however many rows are on their way before it. */
export type Revocations = Readonly<{
  /** Tells of keys that were revoked after a revision and lately; `false`: the right to publish is lost. */
  tell(after: number): Promise<boolean>;
  /** Redis may have lost what it was told. */
  again(): void;
}>;

/** A mirror of many keys takes minutes to have a row; after this every one has it. */
const TOLD_MS = 600_000;

type Deps = Readonly<{
  changes: Pick<Changes, 'revision' | 'revokedAfter'>;
  head: Pick<RedisHead, 'revoked'>;
  clock: Clock;
}>;

export function createRevocations({ changes, head, clock }: Deps): Revocations {
  const sinceMs = clock.monotonic();
  const toldAtMs = new Map<string, number>();
  let seen = 0;
  /** What Redis has; `undefined`: nobody knows. */
  let told: string | undefined = '';
  /** What a start before this one told stands as long as its own would. */
  let isFirst = true;

  async function tell(after: number): Promise<boolean> {
    const nowMs = clock.monotonic();
    const { value } = changes.revision();
    if (value !== seen)
      for (const id of changes.revokedAfter(Math.max(after, seen)).toReversed()) toldAtMs.set(id, nowMs);
    seen = value;
    for (const [id, atMs] of toldAtMs)
      if (nowMs - atMs > TOLD_MS || toldAtMs.size > REVOKED_MAX) toldAtMs.delete(id);
    if (isFirst && nowMs - sinceMs > TOLD_MS) [isFirst, told] = [false, undefined];
    const text = revokedText([...toldAtMs.keys()]);
    if (text === told) return true;
    if (!(await head.revoked(text))) return false;
    told = text;
    return true;
  }

  return { tell, again: () => void (told = toldAtMs.size > 0 ? undefined : told) };
}
