import pino, { type Logger } from 'pino';

/** A structured log of one app: JSON lines on standard output, with Unix milliseconds in `time`. */
export type Log = Logger;

/** Where a key or a secret could stand if someone logged a whole object by mistake. */
const REDACTED = [
  'key',
  'secret',
  'authorization',
  '*.key',
  '*.secret',
  '*.authorization',
  '*.headers',
  'headers',
];

/** The log of `app`. Lines are written at once, so that the last ones before a death are there. */
export function createLog(app: string): Log {
  return pino({ base: { app }, redact: REDACTED }, pino.destination({ dest: 1, sync: true }));
}
