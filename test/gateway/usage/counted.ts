import { hashOf, keyIdOf, readApiKey } from '../../../shared/keys/api-key.ts';
import type { startGateway } from '../../started/gateway.ts';

type Started = Pick<Awaited<ReturnType<typeof startGateway>>, 'gateway' | 'ledger'>;

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
  const wellFormed = readApiKey(key);
  if (wellFormed === undefined) throw new Error('the test made a key that is none');
  const rows = ledger
    .query<Counted & { method: string }, [string]>(
      `SELECT method, sum(calls) AS calls, sum(credits - refunded) AS credits, sum(errors) AS errors,
        sum(bytes_out) AS bytes, sum(refused) AS refused FROM usage_hours WHERE key_id = ? GROUP BY method`,
    )
    .all(keyIdOf(hashOf(wellFormed)));
  return Object.fromEntries(rows.map(({ method, ...counted }) => [method, counted]));
}

/** Nothing but what is given. */
export function counted(given: Partial<Counted>): Counted {
  return { calls: 0, credits: 0, errors: 0, bytes: 0, refused: 0, ...given };
}
