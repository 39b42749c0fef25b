import { hashOf, keyIdOf, readApiKey } from '../../../shared/keys/api-key.ts';
import type { startGateway } from '../../started/gateway.ts';

type Gateway = Awaited<ReturnType<typeof startGateway>>;
type Started = Pick<Gateway, 'gateway' | 'ledger'>;

/** What an operator would read of one method. `credits` are what it cost after refunds. */
export type Counted = Readonly<{
  calls: number;
  credits: number;
  errors: number;
  bytes: number;
  refused: number;
}>;

/** What was counted of a key, by method. */
export function countedOf({ gateway, ledger }: Started, key: string): Record<string, Counted> {
  gateway.flush();
  const rows = ledger
    .query<Counted & { method: string }, [string]>(
      `SELECT method, sum(calls) AS calls, sum(credits - refunded) AS credits, sum(errors) AS errors,
        sum(bytes_out) AS bytes, sum(refused) AS refused FROM usage_hours WHERE key_id = ? GROUP BY method`,
    )
    .all(idOf(key));
  return Object.fromEntries(rows.map(({ method, ...counted }) => [method, counted]));
}

/** The credits of a key's account as its journal and as its usage have them, charged and refunded; the usage has both twice. */
export function settledOf({ gateway, ledger, accounts }: Started & Pick<Gateway, 'accounts'>, key: string) {
  gateway.flush();
  const owner = accounts.query('SELECT account_id FROM keys WHERE id = ?').values(idOf(key));
  const of = Number(owner[0]?.[0]);
  const journal =
    ledger.query('SELECT charged, refunded FROM spent WHERE account_id = ?').values(of)[0] ?? [];
  const usage = ledger
    .query(
      'SELECT sum(charged), sum(returned), sum(credits), sum(refunded) FROM usage_hours WHERE account_id = ?',
    )
    .values(of)[0];
  const [charged = 0, refunded = 0] = journal.map(Number);
  return { journal: [charged, refunded] as const, usage: (usage ?? []).map(Number) };
}

/** How many answers to a key were timed. */
export function timedOf({ gateway, ledger }: Started, key: string): unknown {
  gateway.flush();
  const timed = 'SELECT sum(within_10ms + within_50ms + within_250ms + within_1s + slower) FROM usage_hours';
  return ledger.query(`${timed} WHERE key_id = ?`).values(idOf(key))[0]?.[0];
}

function idOf(key: string) {
  const wellFormed = readApiKey(key);
  if (wellFormed === undefined) throw new Error('the test made a key that is none');
  return keyIdOf(hashOf(wellFormed));
}

/** Nothing but what is given. */
export function counted(given: Partial<Counted>): Counted {
  return { calls: 0, credits: 0, errors: 0, bytes: 0, refused: 0, ...given };
}
