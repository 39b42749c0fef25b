import type { Clock } from '../../shared/clock.ts';
import type { Store } from '../../shared/store/open.ts';
import type { CreditAsk, LeaseStore, NodeId } from '../lease/messages.ts';
import type { SpentRow } from '../lease/pump.ts';

type Voice = Readonly<{ ledger: Store; store: LeaseStore; clock: Clock; signal: AbortSignal }>;

/** Rows told in one message, and the pause before those that were not taken are told again. */
const ROWS_MAX = 256;
const AGAIN_MS = 1_000;

/** What a node spent of each account, by its rows of the ledger. */
export function spentBy(ledger: Store, node: string): readonly SpentRow[] {
  return ledger
    .query<SpentRow, [string]>(
      'SELECT account_id AS accountId, charged, refunded FROM spent WHERE node = ? AND charged > 0',
    )
    .all(node);
}

/** The nodes that have spent on this host, apart from this one. */
export function formerNodes(ledger: Store, node: string): readonly string[] {
  const nodes = ledger.query<{ node: string }, [string]>('SELECT DISTINCT node FROM spent WHERE node <> ?');
  return nodes.all(node).map((row) => row.node);
}

/** Credits that other nodes than this one have spent, by account: while it is alone they do not change. */
export function spentElsewhere(ledger: Store, node: string): ReadonlyMap<number, number> {
  const rows = ledger.query<{ accountId: number; spent: number }, [string]>(
    'SELECT account_id AS accountId, sum(charged - refunded) AS spent FROM spent WHERE node <> ? GROUP BY account_id',
  );
  return new Map(rows.all(node).map(({ accountId, spent }) => [accountId, spent]));
}

/**
 * Tells the centre what nodes spent that do not run any more: a gateway that was alone, or a place that the config has
 * no longer. They speak below every fence, so that only their counters are taken; nothing is held for them. Repeats
 * what was not taken until `signal` aborts.
 */
export async function speakFor(
  nodes: readonly string[],
  { ledger, store, clock, signal }: Voice,
): Promise<void> {
  for (const node of nodes) {
    // The centre takes any name for a node; these come from rows that it or a gateway alone has written.
    const speaker = { node: node as NodeId, fence: 0, seq: 0 };
    const left = spentBy(ledger, node).map(askFrom);
    while (left.length > 0 && !signal.aborted) {
      const part = left.slice(0, ROWS_MAX);
      const answers = await store.credits(speaker, part);
      left.splice(0, part.length, ...part.filter((_, i) => answers[i]?.kind !== 'granted'));
      if (answers.some(({ kind }) => kind !== 'granted')) await clock.sleep(AGAIN_MS, signal);
    }
  }
}

/** The account's own total is newer than revision -1, and told by who serves it. */
function askFrom(row: SpentRow): CreditAsk {
  return { ...row, revision: -1, total: 0, held: 0, wanted: 0, needed: 0 };
}
