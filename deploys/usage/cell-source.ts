import type { Store } from '../../shared/store/open.ts';

/** What one node counted in one hour of one key's method, as absolute values that only grow. */
export type HourCell = Readonly<{
  hour: number;
  accountId: number;
  keyId: string;
  method: string;
  node: string;
  calls: number;
  credits: number;
  refunded: number;
  errors: number;
  bytesOut: number;
  refused: number;
  charged: number;
  returned: number;
}>;

/**
 * Where the cells of gateways on other hosts come from. Gateways on this host write them into the ledger themselves,
 * and there is no source.
 */
export type CellSource = Readonly<{
  /**
   * Hands over cells that changed until `signal` aborts. A cell may come twice, late or out of order; when `take`
   * throws it was not written, and must come again. Never rejects.
   */
  run(take: (cells: readonly HourCell[]) => void, signal: AbortSignal): Promise<void>;
}>;

/**
 * Takes cells into the ledger, all or none. The larger of two values stands, so that what comes twice or late changes
 * nothing. Throws when they cannot be written.
 */
export function createTakeCells(ledger: Store): (cells: readonly HourCell[]) => void {
  const put = ledger.prepare<null, HourCell>(`
    INSERT INTO usage_hours VALUES ($hour, $accountId, $keyId, $method, $node,
      $calls, $credits, $refunded, $errors, $bytesOut, $refused, $charged, $returned)
    ON CONFLICT DO UPDATE SET calls = max(calls, excluded.calls), credits = max(credits, excluded.credits),
      refunded = max(refunded, excluded.refunded), errors = max(errors, excluded.errors),
      bytes_out = max(bytes_out, excluded.bytes_out), refused = max(refused, excluded.refused),
      charged = max(charged, excluded.charged), returned = max(returned, excluded.returned)`);
  const take = ledger.transaction((cells: readonly HourCell[]) => {
    for (const cell of cells) put.run({ ...cell });
  });
  return take.immediate;
}
