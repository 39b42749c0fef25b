/** How far a slot must have been agreed upon (Agave `commitment.rs`). */
export const COMMITMENTS = ['processed', 'confirmed', 'finalized'] as const;
export type Commitment = (typeof COMMITMENTS)[number];

/** How much of the chain a backend has shown to have: learnt from probes and from its answers. */
export type View = {
  /** The newest slot it has shown, by commitment; 0: none yet. */
  readonly tip: Record<Commitment, number>;
  /** Its first available block, without any long-term storage behind it; `undefined`: not known. */
  floor: number | undefined;
  /** Its first available block with its long-term storage; `undefined`: not known. */
  reach: number | undefined;
};

export function createView(): View {
  return { tip: { processed: 0, confirmed: 0, finalized: 0 }, floor: undefined, reach: undefined };
}
