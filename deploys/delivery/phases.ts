/**
 * How long each part of one attempt took, in milliseconds; `undefined` for a part that was never finished. `dnsMs` ends
 * with a vetted address, `connectMs` with TCP, `tlsMs` with a verified peer, `firstByteMs` with the status line; each
 * is counted from the end of the part before it. `totalMs` is the whole attempt, the answer's body included.
 */
export type Phases = Readonly<{
  dnsMs: number | undefined;
  connectMs: number | undefined;
  tlsMs: number | undefined;
  firstByteMs: number | undefined;
  totalMs: number;
}>;
