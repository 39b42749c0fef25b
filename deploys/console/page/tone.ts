/** What a colour says; every use of one also says it in words or by a shape. */
export const TONES = ['good', 'bad', 'warning', 'waiting', 'quiet', 'accent'] as const;

/** One of `TONES`. */
export type Tone = (typeof TONES)[number];
