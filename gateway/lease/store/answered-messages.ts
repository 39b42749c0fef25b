import type { Speaker } from '../messages.ts';

/** The latest message about each account that the centre answered: what it must still remember. */
export type AnsweredMessages = Readonly<{
  /** Its seq, or 0 when none was under this speaker's fence. */
  last(speaker: Speaker, accountId: number): number;
  note(speaker: Speaker, accountId: number): void;
}>;

/** Accounts remembered; the one that was silent longest is forgotten first, and asks as one that was never answered. */
const ACCOUNTS_MAX = 50_000;

export function createAnsweredMessages(accountsMax = ACCOUNTS_MAX): AnsweredMessages {
  const seqs = new Map<number, number>();
  let start = '';

  /** Another start of the node, or another node, begins with nothing. */
  function beginFor({ node, fence }: Speaker): void {
    const its = `${node} ${fence}`;
    if (its === start) return;
    start = its;
    seqs.clear();
  }

  return {
    last(speaker, accountId) {
      beginFor(speaker);
      return seqs.get(accountId) ?? 0;
    },
    note(speaker, accountId) {
      beginFor(speaker);
      const latest = Math.max(seqs.get(accountId) ?? 0, speaker.seq);
      seqs.delete(accountId);
      seqs.set(accountId, latest);
      if (seqs.size <= accountsMax) return;
      const [oldest] = seqs.keys();
      if (oldest !== undefined) seqs.delete(oldest);
    },
  };
}
