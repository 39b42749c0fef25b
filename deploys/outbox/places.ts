import type { Claim } from './claim.ts';

/** Attempts under way at a time. */
export const IN_FLIGHT_MAX = 64;
/** Of them, those that are not a delivery's first: a quarter is kept for first attempts. */
export const RETRIES_MAX = 48;
/** Of one webhook, and of all webhooks on one host: a receiver that hangs holds up nobody else. */
export const PER_WEBHOOK_MAX = 4;
export const PER_HOST_MAX = 8;
/** Of one account, before places go to who holds as many. */
const PER_ACCOUNT_FIRST = 4;

type Candidate = Readonly<{
  account_id: number;
  webhook_id: string;
  host: string;
  attempts: number;
  next_attempt_at_ms: number | null;
}>;

/** The places there are for attempts, less those that `underWay` hold. */
export function createPlaces(underWay: Iterable<Claim>) {
  const byWebhook = new Map<string, number>();
  const byHost = new Map<string, number>();
  const byAccount = new Map<number, number>();
  let [taken, retries] = [0, 0];
  for (const claim of underWay) fill(claim);

  function fill({ accountId, webhookId, host, number }: Claim) {
    byAccount.set(accountId, (byAccount.get(accountId) ?? 0) + 1);
    byWebhook.set(webhookId, (byWebhook.get(webhookId) ?? 0) + 1);
    byHost.set(host, (byHost.get(host) ?? 0) + 1);
    taken++;
    if (number !== 1) retries++;
  }

  const fullOf = (counts: ReadonlyMap<string | number, number>, max: number) =>
    JSON.stringify([...counts].flatMap(([name, count]) => (count >= max ? [name] : [])));

  return {
    free: () => Math.max(0, IN_FLIGHT_MAX - taken),
    /**
     * What an account may hold before anybody may take the rest: a place goes to who has less than a few, then to who
     * has less than an even share, counting one account more than there are. So accounts whose receivers hang hold up
     * nobody else, and one that is alone has every place.
     */
    shares: (): readonly number[] => {
      const even = Math.floor(IN_FLIGHT_MAX / (byAccount.size + 1));
      return [PER_ACCOUNT_FIRST, Math.max(PER_ACCOUNT_FIRST, even)];
    },
    hasRoomForRetries: () => retries < RETRIES_MAX,
    /** What has no room left while an account may hold `share`, each as a JSON array. */
    full: (share: number) => ({
      accounts: fullOf(byAccount, share),
      webhooks: fullOf(byWebhook, PER_WEBHOOK_MAX),
      hosts: fullOf(byHost, PER_HOST_MAX),
    }),
    hasRoomFor: (row: Candidate, share: number): boolean =>
      taken < IN_FLIGHT_MAX &&
      (byAccount.get(row.account_id) ?? 0) < share &&
      (byWebhook.get(row.webhook_id) ?? 0) < PER_WEBHOOK_MAX &&
      (byHost.get(row.host) ?? 0) < PER_HOST_MAX &&
      (retries < RETRIES_MAX || (row.attempts === 0 && row.next_attempt_at_ms !== null)),
    fill,
  };
}
