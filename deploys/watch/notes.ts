import type { Log } from '../../shared/log.ts';
import { type Deploy, type DeploySlots, deploysBetween } from './change.ts';
import type { WatchedProgram } from './watched.ts';
import type { Latest, Unread } from './watcher.ts';

export type Notes = Readonly<{
  noteRead(latest: Latest, deploys: readonly Deploy[], reasons: readonly string[]): void;
  noteUnread(unread: Unread): void;
  /** Hears that what was stored is of another chain and was forgotten. */
  noteOtherChain(): void;
}>;

/**
 * What the operator reads about readings. `before` is what the last run had stored: deploys since then are no events
 * (spec 6.2.3), and this log is the one place that tells of them.
 */
export function createNotes(log: Log, watched: readonly WatchedProgram[], before: DeploySlots): Notes {
  const labels = new Map(watched.map(({ address, label }) => [address, label]));
  let stored = before;
  let isFirst = true;
  const tell = (deploys: readonly Deploy[], sentence: string) => {
    for (const { program, previousSlot, deploySlot } of deploys) {
      const slots = { previous_slot: Number(previousSlot), deploy_slot: Number(deploySlot) };
      log.info({ program, label: labels.get(program), ...slots }, sentence);
    }
  };

  return {
    noteRead: (latest, deploys, reasons) => {
      if (reasons.length > 0)
        log.warn({ reasons }, 'read from a backend further down the list, or believed after doubts');
      if (isFirst) {
        log.info(
          { slot: Number(latest.reading.contextSlot), programs: latest.reading.programs.size },
          'first reading',
        );
        tell(deploysBetween(stored, latest.reading), 'deployed while nobody watched');
      }
      isFirst = false;
      tell(deploys, 'deployed');
    },
    noteUnread: (unread) => {
      if (unread.kind === 'broken') log.error({ err: unread.error }, 'a reading broke');
      else log.warn({ outcome: unread.kind, reasons: unread.reasons }, 'the programs could not be read');
    },
    noteOtherChain: () => {
      stored = new Map();
      log.warn('the chain is another one than before: its block times and last reading are forgotten');
    },
  };
}
