import type { Backend } from '../backend/backend.ts';
import type { Commitment, View } from '../backend/view.ts';
import type { Clock } from '../../shared/clock.ts';
import { PROFILES } from '../../shared/config/profiles.ts';
import { preference } from './preference.ts';
import { shareBack } from './standing.ts';
import type { Wish } from './wish.ts';

/** How good a choice is; a lower one is asked earlier, and the worst still serves when there is no other. */
const GOOD = 0;
/** Well, and known to be behind the slot that the caller needs. */
const BEHIND = 1;
/** Just back, and this caller is not yet given back to it. */
const RETURNING = 2;
/** Left out, but alive: its chain is older than the pool's. */
const LATE = 3;
/** Failed a moment ago, says itself that it is not well, or does not answer at all. */
const FAILING = 4;

type Choice = Readonly<{ backend: Backend; rank: number; tip: number; score: number }>;

/**
 * The backends in the order in which a call of the account asks them: the good ones as the account prefers them, then
 * those that are behind, newest first, then the others. `slotMin` is the slot that the call's answer must reach; 0: any.
 */
export function inOrder(
  able: readonly Backend[],
  accountId: number,
  { commitment }: Wish,
  slotMin: number,
  clock: Clock,
): readonly Backend[] {
  if (able.length < 2) return able;
  const nowMs = clock.monotonic();
  const choices = able.map((backend): Choice => {
    const score = preference(accountId, backend.number);
    const tip = tipOf(backend.view, commitment);
    return { backend, rank: rankOf(backend, score, tip), tip, score };
  });
  return choices.toSorted(better).map(({ backend }) => backend);

  function rankOf(backend: Backend, score: number, tip: number): number {
    const { standing, config } = backend;
    if (backend.isFailing(clock)) return FAILING;
    if (standing.out === 'lagging' || standing.out === 'stalled') return LATE;
    if (standing.out !== undefined) return FAILING;
    if (score / 2 ** 32 > shareBack(standing, nowMs)) return RETURNING;
    if (commitment === 'processed' && !PROFILES[config.profile].processed) return BEHIND;
    return slotMin > 0 && tip > 0 && tip < slotMin ? BEHIND : GOOD;
  }
}

/** The slot by which a backend is compared; a call without a commitment of its own may mean the newest bank. */
function tipOf({ tip }: View, commitment: Commitment | undefined): number {
  return commitment === undefined ? Math.max(tip.processed, tip.confirmed, tip.finalized) : tip[commitment];
}

function better(a: Choice, b: Choice): number {
  if (a.rank !== b.rank) return a.rank - b.rank;
  if ((a.rank === BEHIND || a.rank === LATE) && a.tip !== b.tip) return b.tip - a.tip;
  return b.score - a.score;
}
