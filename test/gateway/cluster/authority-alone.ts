import { answer, decode } from '../../../gateway/cluster/authority.ts';
import type { CreditReport, Message, RateReport, Reply, Sender } from '../../../gateway/cluster/messages.ts';
import { creditMessage, rateMessage, senderOf } from './stores.ts';

type Revised<Report> = Partial<Report & { revision: number }>;

/** An authority that is sent one message after the other about one account, on a clock that the test sets. */
export function startAuthority(plan: Revised<RateReport> = {}) {
  let blob: string | undefined;
  let nowMs = 1_700_000_000_000;
  let learning = false;
  const seqs = new Map<string, number>();
  const sent: (readonly [Sender, Message])[] = [];

  const sender = (node: string, fence = 1): Sender => {
    const seq = (seqs.get(node) ?? 0) + 1;
    seqs.set(node, seq);
    return senderOf(node, seq, fence);
  };
  function sendAs(by: Sender, message: Message): Reply {
    sent.push([by, message]);
    const done = answer(blob, by, message, {
      nowMs,
      sinceLossMs: learning ? 0 : Infinity,
      answeredSeq: undefined,
    });
    blob = done.blob;
    return done.reply;
  }
  function rateAs(by: Sender, report: Revised<RateReport>) {
    const { revision = 1, ...rest } = { ...plan, ...report };
    const { rate } = sendAs(by, { ...rateMessage(rest), revision });
    if (rate === undefined) throw new Error('a report has a grant');
    return rate;
  }
  function creditsAs(by: Sender, { revision = 1, ...report }: Revised<CreditReport>) {
    const { credits } = sendAs(by, { ...creditMessage(report), revision });
    if (credits === undefined) throw new Error('a report has a grant');
    return credits;
  }
  return {
    sender,
    rateAs,
    creditsAs,
    rate: (node: string, report: Revised<RateReport>) => rateAs(sender(node), report),
    credits: (node: string, report: Revised<CreditReport>) => creditsAs(sender(node), report),
    /** Delivers a message once more, `back` before the last one. */
    again(back: number): void {
      const one = sent.at(-1 - back);
      if (one !== undefined) sendAs(...one);
    },
    wait: (ms: number) => void (nowMs += ms),
    learn: (is: boolean) => void (learning = is),
    blob: () => blob,
    nodes: () => decode(blob).rate?.nodes ?? [],
  };
}
