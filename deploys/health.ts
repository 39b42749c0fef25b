import { basename } from 'node:path';
import { descriptorsMax, descriptorTrouble } from '../shared/descriptors.ts';
import { type Store, watchFile } from '../shared/store/open.ts';
import { fileReason } from '../shared/store/private.ts';
import type { WatchState } from './watch/watcher.ts';

/** Whether the service does its work, in a sentence for the operator. */
export type Health = Readonly<{ isWell: boolean; sentence: string }>;

/** Readings that may fail before the data counts as stale. */
const READINGS_MISSED_MAX = 3;

/** What the watcher's state means at `nowMs` (Unix milliseconds). */
export function healthOf({ latest, trouble }: WatchState, pollMs: number, nowMs: number): Health {
  const why = trouble === undefined ? '' : ` ${reasonOf(trouble)}`;
  if (latest === undefined) {
    return { isWell: false, sentence: `The programs have not been read from the chain yet.${why}` };
  }
  const ageMs = Math.max(0, nowMs - latest.checkedAtMs);
  const read = `${latest.reading.programs.size} programs were read ${Math.round(ageMs / 1_000)} s ago at slot ${latest.reading.contextSlot}.`;
  if (ageMs <= READINGS_MISSED_MAX * pollMs) return { isWell: true, sentence: `ok: ${read}${why}` };
  return { isWell: false, sentence: `The data is stale: ${read}${why}` };
}

/** Two parts' health as one: well if both are; the second is told only when it is not. */
export function bothHealths(first: Health, second: Health | undefined): Health {
  if (second === undefined || second.isWell) return first;
  return { isWell: false, sentence: `${first.sentence} ${second.sentence}` };
}

/** Watches whether the databases are in their places and can be read, and whether descriptors are left. */
export function createStoresHealth(stores: readonly Store[]): () => Health {
  const max = descriptorsMax();
  const watched = stores.map((store) => ({
    name: basename(store.filename),
    changeOf: watchFile(store),
    read: store.prepare('SELECT 1 FROM migrations LIMIT 1'),
  }));

  function complaint(): string | undefined {
    for (const { name, changeOf, read } of watched) {
      const change = changeOf();
      if (change !== undefined) return `The database ${change.what}; ${change.cause}.`;
      try {
        read.get();
      } catch (error) {
        return `The database ${name} cannot be read (${fileReason(error)}).`;
      }
    }
    const descriptors = descriptorTrouble(max);
    return descriptors?.stops ? `For this process ${descriptors.what} (${descriptors.cause}).` : undefined;
  }

  return () => {
    const sentence = complaint();
    return { isWell: sentence === undefined, sentence: sentence ?? 'The databases are well.' };
  };
}

function reasonOf(trouble: NonNullable<WatchState['trouble']>): string {
  if (trouble.kind === 'broken') return 'The last reading failed inside this service; its log says how.';
  return `The last reading failed: ${trouble.reasons.join('; ')}.`;
}
