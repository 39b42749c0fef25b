import type { Released } from '../centre-credit.ts';
import type {
  CreditAsk,
  CreditGrant,
  NodeId,
  RateAsk,
  RateGrant,
  ScanAsk,
  ScanGrant,
  Speaker,
} from '../messages.ts';

/** The arguments of the rate script, in its order (scripts.ts). */
export function rateWords({ node, fence, seq }: Speaker, ask: RateAsk, strange: boolean): readonly string[] {
  const { revision, rps, burst, spent, wanted, needed, weight, recovering } = ask;
  const numbers = [fence, seq, revision, rps, burst, spent, wanted, needed, weight];
  return [node, ...numbers.map(String), flag(recovering), flag(strange)];
}

/** Reads the rate script's reply; throws when it is none. */
export function rateGrantOf(reply: unknown): RateGrant {
  const at = numbersIn(wordsOf(reply));
  return {
    granted: at(0),
    spent: at(1),
    given: at(2),
    lifeMs: at(3),
    waitMs: at(4),
    left: at(5),
    nodes: at(6),
    weights: at(7),
  };
}

/** The arguments of the credit script, in its order. `answered` is the seq of the node's last answered message, or 0. */
export function creditWords(
  { node, fence, seq }: Speaker,
  { revision, total, charged, refunded, wanted, needed, held }: CreditAsk,
  learning: boolean,
  answered: number,
): readonly string[] {
  const numbers = [fence, seq, revision, total, charged, refunded, wanted, needed, held];
  return [node, ...numbers.map(String), flag(learning), String(answered)];
}

export type CreditReply = Readonly<{ grant: CreditGrant; lost: boolean; released: readonly Released[] }>;

/** Reads the credit script's reply; throws when it is none. */
export function creditReplyOf(reply: unknown): CreditReply {
  const words = wordsOf(reply);
  const at = numbersIn(words);
  const released: Released[] = [];
  for (let place = 7; place < words.length; place += 2) {
    // The ids that the script repeats are those that nodes gave it.
    released.push({ node: words[place] as NodeId, credits: at(place + 1) });
  }
  const held = { allowance: at(0), available: at(1), heldByOthers: at(2), heldByDead: at(3) };
  return {
    grant: { ...held, recalled: at(4) === 1, learning: at(5) === 1 },
    lost: at(6) === 1,
    released,
  };
}

/** The arguments of the scan script, in its order. */
export function scanWords({ node, fence, seq }: Speaker, ask: ScanAsk, learning: boolean): readonly string[] {
  const { revision, scans, kept, wanted } = ask;
  return [node, ...[fence, seq, revision, scans, kept, wanted].map(String), flag(learning)];
}

/** Reads the scan script's reply; throws when it is none. */
export function scanGrantOf(reply: unknown): ScanGrant {
  const at = numbersIn(wordsOf(reply));
  return { held: at(0), lifeMs: at(1), others: at(2) === 1, fair: at(3), learning: at(4) === 1 };
}

function wordsOf(reply: unknown): readonly string[] {
  if (typeof reply !== 'string') throw new Error('the lease script gave no text');
  return reply.split(' ');
}

function numbersIn(words: readonly string[]): (at: number) => number {
  return (at) => {
    const number = Number(words[at] ?? Number.NaN);
    if (Number.isNaN(number)) throw new Error('the lease script gave too little');
    return number;
  };
}

function flag(is: boolean): string {
  return is ? '1' : '0';
}
