import type { ConsoleKeys } from './console-keys.ts';

/** What a browser carries between two steps of a login: signed, for one use, and good for a few minutes. */
export type Tickets = Readonly<{
  make(fields: Readonly<Record<string, string>>, nowMs: number): string;
  /** The fields, or `undefined`: not ours, of another use, or over. */
  read(ticket: string | undefined, nowMs: number): Readonly<Record<string, string>> | undefined;
}>;

const CHARACTERS_MAX = 4_096;

/** Tickets of one `use`, good for `lastMs`. They are readable by who carries them, so no secret of others goes in. */
export function createTickets(keys: ConsoleKeys, use: string, lastMs: number): Tickets {
  return {
    make: (fields, nowMs) => {
      const text = Buffer.from(JSON.stringify({ fields, untilMs: nowMs + lastMs })).toString('base64url');
      return `${text}.${keys.sign(use, text).toString('base64url')}`;
    },
    read: (ticket, nowMs) => {
      if (ticket === undefined || ticket.length > CHARACTERS_MAX) return undefined;
      const [text = '', signature = ''] = ticket.split('.');
      if (!keys.isSigned(use, text, Buffer.from(signature, 'base64url'))) return undefined;
      const { fields, untilMs } = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'));
      return nowMs < untilMs ? fields : undefined;
    },
  };
}
