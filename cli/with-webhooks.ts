import type { By } from '../deploys/accounts/audit.ts';
import { internetPolicy } from '../deploys/delivery/policy.ts';
import { createEnqueue } from '../deploys/outbox/enqueue.ts';
import { type AccountDeliveries, createAccountDeliveries } from '../deploys/outbox/list.ts';
import { readWatched } from '../deploys/watch/watched.ts';
import { countSealed, createSeal, takeSealingKeys } from '../deploys/webhooks/seal.ts';
import { createWebhooks, type Webhooks } from '../deploys/webhooks/webhooks.ts';
import { unknownAccount } from './account-lines.ts';
import { COMMAND_LINE, withAccountsAwaited } from './books.ts';
import { failed, type Invocation, type Outcome } from './command.ts';

/** The webhooks of the account that a command names first, and who changes them. */
export type WebhookDesk = Readonly<{
  webhooks: Webhooks;
  deliveries: AccountDeliveries;
  by: By;
  nowMs: number;
}>;

/** Opens the webhooks of the account in the first operand. The running app sends what falls due within a second. */
export function withWebhooks(
  invocation: Invocation,
  act: (desk: WebhookDesk) => Outcome | Promise<Outcome>,
): Promise<Outcome> {
  const { clock, random } = invocation.world;
  return withAccountsAwaited(invocation, async ({ config, store, accounts }) => {
    const name = invocation.operands[0] ?? '';
    const account = accounts.find(name);
    if (account === undefined) return failed(unknownAccount(name));
    const watched = readWatched(config.deploys.programsPath);
    if (watched.kind === 'problems') return failed(...watched.lines);
    const sealing = takeSealingKeys(
      config.storage.secret,
      config.storage.dataDir,
      random,
      countSealed(store),
    );
    if (sealing.kind === 'unusable') return failed(sealing.sentence);
    const addresses = new Set<string>(watched.programs.map(({ address }) => address));
    const webhooks = createWebhooks({
      store,
      clock,
      random,
      seal: createSeal(sealing.keys, random),
      policy: internetPolicy([config.deploys.publicUrl.hostname]),
      isWatched: (address) => addresses.has(address),
      enqueue: createEnqueue(store, (program) => program, random),
      wake: () => undefined,
    });
    const by = { accountId: account.id, actor: COMMAND_LINE };
    return act({ webhooks, deliveries: createAccountDeliveries(store), by, nowMs: clock.now() });
  });
}
