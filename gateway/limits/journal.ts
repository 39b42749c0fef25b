import type { Store } from '../../shared/store/open.ts';
import { fileReason, isBusy } from '../../shared/store/private.ts';

/** The spending of one account through a node: two counters that only grow. Mutable: it is the account's state. */
export type Spending = { charged: number; refunded: number };

/** With what other nodes had spent when it was read: it does not change while this node is alone. */
type JournalledSpending = Spending & { readonly elsewhere: number };

/** The spending of another node. Of one on another host it is what deploys was told: the node may have spent more since. */
export type OtherSpending = Spending & { readonly isOnHost: boolean };

export type Journal = Readonly<ReturnType<typeof createJournal>>;

/** Writes in the same transaction as the counters, so that both agree to the unit whenever the process dies. */
type SameTransaction = Readonly<{
  /** Throws when it cannot be written. */
  write(): void;
  /** The transaction is in the write-ahead log. */
  written(): void;
}>;

export type SpentRow = Readonly<{ accountId: number; node: string } & Spending>;

/** How long a write waits for another process, and every request of this one with it, in milliseconds. */
const BUSY_MS = 25;
/** While another process holds the ledger a turn is tried so often, for 0.3 s; after one that failed, once, until one is written. */
const TRIES_MAX = 12;
/** Retries in a row after which a failure is a trouble: a ledger may be held for a moment. */
const RETRIES_BEFORE_TROUBLE = 5;

/** How the last write went: `tries` of it so far, or `retries` since it failed. */
type Writes =
  Readonly<{ kind: 'well'; tries: number }> | Readonly<{ kind: 'failing'; reason: string; retries: number }>;

const OTHERS = `
  SELECT node, charged, refunded, node IN (SELECT node FROM nodes) AS known FROM spent
  WHERE account_id = ? AND node <> ?`;

/** The counters of `node` in a ledger. `soon` runs a function once, after the current turn's other work. */
export function createJournal(
  ledger: Store,
  node: string,
  soon: (run: () => void) => void,
  sameTransaction?: SameTransaction,
) {
  const read = ledger.prepare<JournalledSpending, [number, string]>(`
    SELECT total(charged) FILTER (WHERE node = ?2) AS charged, total(refunded) FILTER (WHERE node = ?2) AS refunded,
      total(charged - refunded) FILTER (WHERE node <> ?2) AS elsewhere FROM spent WHERE account_id = ?1`);
  const write = ledger.prepare<null, [number, string, number, number]>(`
    INSERT INTO spent (account_id, node, charged, refunded) VALUES (?, ?, ?, ?)
    ON CONFLICT (account_id, node) DO UPDATE SET charged = excluded.charged, refunded = excluded.refunded`);
  const writeAll = ledger.transaction(() => {
    for (const [id, { charged, refunded }] of appended) write.run(id, node, charged, refunded);
    sameTransaction?.write();
  });
  const readOthers = ledger.prepare<Spending & { node: string; known: number }, [number, string]>(OTHERS);
  const spendings = new Map<number, JournalledSpending>();
  const appended = new Map<number, Spending>();
  let turn: PromiseWithResolvers<void> | undefined;
  let isFlushing = false;
  let isClosing = false;
  let writes: Writes = { kind: 'well', tries: 0 };
  ledger.run(`PRAGMA busy_timeout = ${BUSY_MS}`);

  /** Reads counters once; `undefined` when the ledger cannot be read. */
  function spendingOf(accountId: number): JournalledSpending | undefined {
    const known = spendings.get(accountId);
    if (known !== undefined) return known;
    try {
      const spending = read.get(accountId, node) ?? undefined;
      if (spending !== undefined) spendings.set(accountId, spending);
      return spending;
    } catch {
      return undefined; // it is tried again at the account's next call
    }
  }

  /** Resolves at the end of this turn, when the counters are in the write-ahead log; rejects when they cannot be now. */
  function append(accountId: number): Promise<void> {
    const spending = spendings.get(accountId);
    if (spending !== undefined) appended.set(accountId, spending);
    if (turn === undefined) {
      turn = Promise.withResolvers<void>();
      turn.promise.catch(() => undefined); // nothing waits for a refund; the counters stay appended
      flushSoon();
    }
    return turn.promise;
  }

  function flushSoon(): void {
    if (isFlushing) return;
    isFlushing = true;
    soon(() => {
      isFlushing = false;
      if (turn !== undefined) flush();
    });
  }

  function flush(): void {
    const ended = turn;
    turn = undefined;
    try {
      if (appended.size > 0) {
        writeAll.immediate();
        sameTransaction?.written();
        appended.clear();
      }
      writes = { kind: 'well', tries: 0 };
      ended?.resolve();
    } catch (error) {
      const tries = writes.kind === 'well' && !isClosing && isBusy(error) ? writes.tries + 1 : TRIES_MAX;
      if (ended !== undefined && tries < TRIES_MAX) {
        [writes, turn] = [{ kind: 'well', tries }, ended];
        return flushSoon();
      }
      const retries = writes.kind === 'failing' ? writes.retries : 0;
      writes = { kind: 'failing', reason: fileReason(error), retries };
      ended?.reject(error);
    }
  }

  return {
    spendingOf,
    /** Reads the spending of an account by each other node in this ledger; none when the ledger cannot be read. */
    spentByOthers(accountId: number): ReadonlyMap<string, OtherSpending> {
      try {
        const rows = readOthers.all(accountId, node);
        return new Map(
          rows.map(({ node: other, known, ...spent }) => [other, { ...spent, isOnHost: known === 1 }]),
        );
      } catch {
        return new Map();
      }
    },
    append,
    flush,
    /** Writes what could not be written before, if there is any; to be called a few times a second. */
    retry() {
      if (writes.kind === 'well') return;
      writes = { ...writes, retries: writes.retries + 1 };
      flush();
    },
    /** Writes what is appended, trying once: the process ends. */
    close() {
      isClosing = true;
      flush();
    },
    /** Whether everything that was appended of the account is in the write-ahead log. */
    isDurable: (accountId: number) => !appended.has(accountId),
    /** Whether the last write failed: no charge can be made durable. */
    isFailing: () => writes.kind === 'failing',
    /** Why writes have failed for a second; `undefined` from the next one that succeeds. */
    failure: () =>
      writes.kind === 'failing' && writes.retries >= RETRIES_BEFORE_TROUBLE ? writes.reason : undefined,
  };
}

/** Reads the spending of each account by the nodes of this host, or one of them. */
export function spentBy(ledger: Store, node: string | null): readonly SpentRow[] {
  const rows = ledger.query<SpentRow, [string | null]>(
    'SELECT account_id AS accountId, node, charged, refunded FROM spent WHERE node = coalesce(?, node) AND charged > 0',
  );
  return rows.all(node);
}
