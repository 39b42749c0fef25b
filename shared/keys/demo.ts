import type { Store } from '../store/open.ts';

/** The account of the embedded chain's demonstration, and the name of its keys. */
export const DEMO = 'demo';

/**
 * Revokes every active demo key: one that was printed to a terminal and stands in a file has no place in front of
 * real backends. Gives how many were active.
 */
export function retireDemoKeys(accounts: Store, nowMs: number): number {
  const revoked = accounts.prepare<unknown, { nowMs: number; demo: string }>(`
    UPDATE keys SET revoked_at_ms = $nowMs
    WHERE name = $demo AND revoked_at_ms IS NULL AND (expires_at_ms IS NULL OR expires_at_ms > $nowMs)
      AND account_id = (SELECT id FROM accounts WHERE name = $demo)`);
  return revoked.run({ nowMs, demo: DEMO }).changes;
}
