import type { Clock } from '../../shared/clock.ts';

/** How long a secret waits for the page that shows it; a redirect takes moments. */
const WAIT_MS = 5 * 60_000;
/** Secrets held at a time; above it the oldest is dropped. */
const WAITING_MAX = 1_000;
const TICKET_BYTES = 16;

/** A GET for a page, by its viewer. */
type Asked = Readonly<{ request: Request; url: URL; viewer: Readonly<{ userId: string }> }>;
type Waiting = Readonly<{ secret: string; untilMs: number }>;

/** New secrets between the form that created them and the one page that shows them. In memory only. */
export function createOneTimeSecrets(clock: Pick<Clock, 'now'>, random: (bytes: number) => Uint8Array) {
  /** By viewer and ticket, so that no ticket reaches what is another's. Oldest first, because every one waits as long. */
  const waiting = new Map<string, Waiting>();

  function forgetOld() {
    for (const [ticket, { untilMs }] of waiting) {
      if (untilMs > clock.now() && waiting.size < WAITING_MAX) return;
      waiting.delete(ticket);
    }
  }
  return {
    /** Keeps a secret for a viewer under `ticket`, which `?shown=` of the page that shows it names. */
    put(userId: string, secret: string, ticket = Buffer.from(random(TICKET_BYTES)).toString('base64url')) {
      forgetOld();
      waiting.set(`${userId} ${ticket}`, { secret, untilMs: clock.now() + WAIT_MS });
      return ticket;
    },
    /** The secret that the address names, once, and for whom it is kept; a HEAD or a refresh of a part takes nothing. */
    take({ request, url, viewer }: Asked): string | undefined {
      if (request.method !== 'GET' || request.headers.has('hx-request')) return undefined;
      const name = `${viewer.userId} ${url.searchParams.get('shown') ?? ''}`;
      const found = waiting.get(name);
      waiting.delete(name);
      return found !== undefined && found.untilMs > clock.now() ? found.secret : undefined;
    },
  };
}

export type OneTimeSecrets = ReturnType<typeof createOneTimeSecrets>;
