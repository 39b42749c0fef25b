import type { Claim } from './claim.ts';

/** What attempts of one kind of webhook may hold at a time; a place is a socket and about 55 kB. */
type Bounds = Readonly<{
  places: number;
  /** Of them, those that are not a delivery's first: a quarter is kept for first attempts. */
  retries: number;
  /** Of one webhook, and of all webhooks on one host; both counted over both kinds. */
  webhook: number;
  host: number;
  account: number;
}>;

const STEADY: Bounds = { places: 640, retries: 480, webhook: 4, host: 8, account: 640 };
/** Each may hang for 10 s, so those whose last attempt failed never hold more than a part of all. */
const FAILING: Bounds = { places: 128, retries: 96, webhook: 1, host: 2, account: 32 };
/**
 * Places beyond a webhook's first, which only those have that succeeded a moment ago: nobody can foresee which receivers
 * begin to hang, so hundreds at once take one place each, and the handshakes of others do not wait behind theirs.
 */
const FURTHER_MAX = 256;
/** Of one account, before places go to who holds as many. */
const PER_ACCOUNT_FIRST = 4;

type Candidate = Readonly<{
  account_id: number;
  webhook_id: string;
  host: string;
  is_trusted: number;
  attempts: number;
  next_attempt_at_ms: number | null;
}>;

/** The places there are for attempts, less those that `underWay` hold. */
export function createPlaces(underWay: Iterable<Claim>) {
  const byWebhook = new Map<string, number>();
  const byHost = new Map<string, number>();
  /** Of those that hold places, the webhooks that may hold more. */
  const trusted = new Set<string>();
  let further = 0;
  const [steady, failing] = [createPart(STEADY), createPart(FAILING)];
  for (const claim of underWay) fill(claim);

  function fill(claim: Claim) {
    if (byWebhook.has(claim.webhookId)) further++;
    if (claim.isTrusted) trusted.add(claim.webhookId);
    add(byWebhook, claim.webhookId);
    add(byHost, claim.host);
    (claim.isFailing ? failing : steady).fill(claim);
  }

  function createPart(bounds: Bounds) {
    const byAccount = new Map<number, number>();
    let [taken, retries] = [0, 0];
    const perWebhook = (isTrusted: boolean, isFirst: boolean) =>
      isTrusted && !isFirst && further < FURTHER_MAX ? bounds.webhook : 1;
    return {
      free: () => Math.max(0, bounds.places - taken),
      /**
       * What an account may hold before anybody may take the rest: a place goes to who has less than a few, then to
       * who has less than an even share, counting one account more than there are. So accounts whose receivers hang
       * hold up nobody else, and one that is alone has every place.
       */
      shares: (): readonly number[] => {
        const even = Math.floor(bounds.places / (byAccount.size + 1));
        return [PER_ACCOUNT_FIRST, Math.max(PER_ACCOUNT_FIRST, even)];
      },
      most: bounds.account,
      hasRoomForRetries: () => retries < bounds.retries,
      /** What has no room left while an account may hold `share`, and a webhook one place if `isFirst`; JSON arrays. */
      full: (share: number, isFirst: boolean) => ({
        accounts: fullOf(byAccount, () => Math.min(share, bounds.account)),
        webhooks: fullOf(byWebhook, (id) => perWebhook(trusted.has(id), isFirst)),
        hosts: fullOf(byHost, () => bounds.host),
      }),
      hasRoomFor: (row: Candidate, share: number, isFirst: boolean): boolean =>
        taken < bounds.places &&
        (byAccount.get(row.account_id) ?? 0) < Math.min(share, bounds.account) &&
        (byWebhook.get(row.webhook_id) ?? 0) < perWebhook(row.is_trusted === 1, isFirst) &&
        (byHost.get(row.host) ?? 0) < bounds.host &&
        (retries < bounds.retries || (row.attempts === 0 && row.next_attempt_at_ms !== null)),
      fill({ accountId, number }: Claim) {
        add(byAccount, accountId);
        taken++;
        if (number !== 1) retries++;
      },
    };
  }

  return { steady, failing, fill };
}

function add<Name>(counts: Map<Name, number>, name: Name) {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

function fullOf<Name>(counts: ReadonlyMap<Name, number>, maxOf: (name: Name) => number): string {
  return JSON.stringify([...counts].flatMap(([name, count]) => (count >= maxOf(name) ? [name] : [])));
}
