import type { Store } from '../../shared/store/open.ts';

/** What one account spent through this node: two counters that only grow. Mutable: it is the account's state. */
export type Spending = { charged: number; refunded: number };

/**
 * The durable side of spending. `spendingOf` reads an account's counters once and then owns them in memory;
 * `note` has them written at the end of this turn of the event loop, together with everything else noted in it.
 */
export type Journal = Readonly<{
  /** Throws when the ledger cannot be read. */
  spendingOf(accountId: number): Spending;
  /** Resolves when the counters are in the write-ahead log, which survives the death of the process; rejects when they cannot be. */
  note(accountId: number): Promise<void>;
  /** Writes what is noted now. */
  flush(): void;
  /** Whether the last write failed: no charge can be made durable. */
  isFailing(): boolean;
}>;

/** What is written in the same transaction as the counters, so that both agree to the unit whenever the process dies. */
export type Alongside = Readonly<{
  /** Writes it; throws when it cannot be written. */
  write(): void;
  /** The transaction is in the write-ahead log. */
  written(): void;
}>;

const NOTHING: Alongside = { write: () => undefined, written: () => undefined };

const BUSY_MS = 100;

/** Opens the journal of `node` over a ledger. `soon` runs a function once, after the current turn's other work. */
export function createJournal(
  ledger: Store,
  node: string,
  soon: (run: () => void) => void,
  alongside: Alongside = NOTHING,
): Journal {
  const read = ledger.prepare<Spending, [number, string]>(
    'SELECT charged, refunded FROM spent WHERE account_id = ? AND node = ?',
  );
  const write = ledger.prepare<null, [number, string, number, number]>(`
    INSERT INTO spent (account_id, node, charged, refunded) VALUES (?, ?, ?, ?)
    ON CONFLICT (account_id, node) DO UPDATE SET charged = excluded.charged, refunded = excluded.refunded`);
  const writeAll = ledger.transaction((accountIds: Iterable<number>) => {
    for (const id of accountIds) {
      const { charged, refunded } = spendingOf(id);
      write.run(id, node, charged, refunded);
    }
    alongside.write();
  });
  const spendings = new Map<number, Spending>();
  let noted = new Set<number>();
  let turn: PromiseWithResolvers<void> | undefined;
  let failing = false;
  // Only this process writes the ledger; one that holds it for longer must not hold up every request with it.
  ledger.run(`PRAGMA busy_timeout = ${BUSY_MS}`);

  function spendingOf(accountId: number): Spending {
    const known = spendings.get(accountId);
    if (known !== undefined) return known;
    const spending = read.get(accountId, node) ?? { charged: 0, refunded: 0 };
    spendings.set(accountId, spending);
    return spending;
  }

  function note(accountId: number): Promise<void> {
    noted.add(accountId);
    if (turn === undefined) {
      turn = Promise.withResolvers<void>();
      turn.promise.catch(() => undefined); // a refund waits for nobody; the counters stay noted
      soon(flush);
    }
    return turn.promise;
  }

  function flush(): void {
    const [ended, batch] = [turn, noted];
    turn = undefined;
    noted = new Set();
    try {
      if (batch.size > 0) {
        writeAll.immediate(batch);
        alongside.written();
      }
      failing = false;
      ended?.resolve();
    } catch (error) {
      failing = true;
      for (const id of batch) noted.add(id);
      ended?.reject(error);
    }
  }

  return { spendingOf, note, flush, isFailing: () => failing };
}
