/** A leader this far ahead of the only other node is doubted: 7 minutes of slots, and nobody falls that far behind unnoticed. */
const FAR_SLOTS = 1_024;

/**
 * The slot that backends are measured by, from the newest slot of each: the highest, or the second highest when the
 * highest stands alone. One node that lies, or follows another chain, must not make all others look late. 0 without tips.
 */
export function referenceSlot(tips: readonly number[], lagSlotsMax: number): number {
  const [first = 0, second, third] = tips.filter((tip) => tip > 0).toSorted((a, b) => b - a);
  if (second === undefined) return first;
  // Of two, nobody can say which is right: the higher one, while it is believable.
  const believable = third === undefined ? FAR_SLOTS : lagSlotsMax;
  return first - second > believable ? second : first;
}
