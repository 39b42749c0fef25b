import type { ConsoleKeys } from './console-keys.ts';

/**
 * A cookie of the console. `__Host-` makes browsers refuse it from a subdomain, from another path and over plain http
 * except on this machine.
 */
export type CookieName = `__Host-${string}`;

export const SESSION_COOKIE: CookieName = '__Host-sluice';

/** The value of a request's cookie; `undefined` when there is none, or more than one. */
export function cookieOf(headers: Headers, name: CookieName): string | undefined {
  const pairs = (headers.get('cookie') ?? '').split(';').map((pair) => pair.trim());
  const values = pairs.filter((pair) => pair.startsWith(`${name}=`));
  return values.length === 1 ? values[0]?.slice(name.length + 1) : undefined;
}

/** The `Set-Cookie` of a value of base64url and dots; `lastMs` 0 ends it. Lax, so that a link from elsewhere finds its reader logged in. */
export function setCookie(name: CookieName, value: string, lastMs: number): string {
  return `${name}=${value}; Path=/; Max-Age=${Math.floor(lastMs / 1_000)}; HttpOnly; Secure; SameSite=Lax`;
}

/** What a browser carries between two steps of a login: signed, for one use, and good for a few minutes. */
export type Tickets = Readonly<{
  make(fields: Readonly<Record<string, string>>, nowMs: number): string;
  /** The fields, or `undefined`: not ours, of another use, or over. */
  read(ticket: string | undefined, nowMs: number): Readonly<Record<string, string>> | undefined;
}>;

const TICKET_CHARACTERS_MAX = 4_096;

/** Tickets of one `use`, good for `lastMs`. They are readable by who carries them, so no secret of others goes in. */
export function createTickets(keys: ConsoleKeys, use: string, lastMs: number): Tickets {
  return {
    make: (fields, nowMs) => {
      const text = Buffer.from(JSON.stringify({ fields, untilMs: nowMs + lastMs })).toString('base64url');
      return `${text}.${keys.sign(use, text).toString('base64url')}`;
    },
    read: (ticket, nowMs) => {
      if (ticket === undefined || ticket.length > TICKET_CHARACTERS_MAX) return undefined;
      const [text = '', signature = ''] = ticket.split('.');
      if (!keys.isSigned(use, text, Buffer.from(signature, 'base64url'))) return undefined;
      const { fields, untilMs } = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'));
      return nowMs < untilMs ? fields : undefined;
    },
  };
}
