import type { Command } from '../command.ts';
import { webhookOutcome } from '../webhook-lines.ts';
import { withWebhooks } from '../with-webhooks.ts';

type Verb = 'pause' | 'resume' | 'remove' | 'switchNow' | 'cancelRotation';

/** A command that does one thing to the webhook in its second operand, and needs nothing else. */
export function webhookVerb(verb: Verb, summary: string, word: string = verb): Command {
  return {
    words: `webhook ${word}`,
    operands: ['ACCOUNT', 'WEBHOOK_ID'],
    options: ['config', 'json'],
    summary,
    act: (invocation) =>
      withWebhooks(invocation, ({ webhooks, by }) => {
        const id = invocation.operands[1] ?? '';
        return webhookOutcome(webhooks[verb](by, id), id);
      }),
  };
}
