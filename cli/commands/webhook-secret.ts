import { type Takeover, TAKEOVERS } from '../../deploys/webhooks/change.ts';
import { type Command, failed } from '../command.ts';
import { webhookOutcome } from '../webhook-lines.ts';
import { withWebhooks } from '../with-webhooks.ts';
import { webhookVerb } from './webhook-verb.ts';

const NAMES = Object.keys(TAKEOVERS) as readonly Takeover[]; // Object.keys forgets the keys' type

export const webhookRotate: Command = {
  words: 'webhook rotate',
  operands: ['ACCOUNT', 'WEBHOOK_ID'],
  options: ['takes-over', 'config', 'json'],
  summary: 'Make a new secret, shown this once, that takes over now, in 1h or in 24h (default).',
  act: (invocation) =>
    withWebhooks(invocation, ({ webhooks, by }) => {
      const id = invocation.operands[1] ?? '';
      const given = invocation.values['takes-over'] ?? '24h';
      const takeover = NAMES.find((name) => name === given);
      if (takeover === undefined) return failed(`--takes-over wants ${NAMES.join(', ')}, not "${given}".`);
      return webhookOutcome(webhooks.rotate(by, id, takeover), id);
    }),
};

export const webhookSwitchSecret = webhookVerb(
  'switchNow',
  'Let a waiting secret take over now.',
  'switch-secret',
);
export const webhookCancelRotation = webhookVerb(
  'cancelRotation',
  'Forget a waiting secret; the old one stays.',
  'cancel-rotation',
);
