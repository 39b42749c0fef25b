/** What a colour says; every use of one also says it in words or by a shape. */
export type Tone = 'good' | 'bad' | 'warning' | 'waiting' | 'quiet' | 'accent';
