import type { Clock } from '../../shared/clock.ts';
import type { Store } from '../../shared/store/open.ts';
import { createAudit } from '../accounts/audit.ts';
import { createResolvePublic, type NetworkPolicy } from '../delivery/policy.ts';
import type { Enqueue } from '../outbox/enqueue.ts';
import { createEdit, createPause, createRemove, createRotate } from './change.ts';
import { createCreate, createCreateOnce } from './create.ts';
import { createSecretsOf, type Seal } from './seal.ts';
import { createSendAgain } from './send-again.ts';
import { createCheckSettings } from './settings.ts';
import { createWebhookRows, type Webhook } from './webhook.ts';

/** All operations on webhooks of an account, others' are not found. A change writes the audit log in its transaction. */
export function createWebhooks(
  parts: Readonly<{
    store: Store;
    clock: Clock;
    seal: Seal;
    policy: NetworkPolicy;
    isWatched(address: string): boolean;
    enqueue: Pick<Enqueue, 'ping'>;
    wake(): void;
    random: (bytes: number) => Uint8Array;
  }>,
) {
  const { store, clock, seal, policy, isWatched, enqueue, wake, random } = parts;
  const rows = createWebhookRows(store);
  const deps = { store, rows, clock, audit: createAudit(store) };
  const check = createCheckSettings({ policy, resolvePublic: createResolvePublic(policy, clock), isWatched });
  const create = createCreate(deps, seal, check, random);
  return {
    list: (accountId: number): Webhook[] => rows.list(accountId, clock.now()),
    find: (accountId: number, id: string): Webhook | undefined => rows.find(accountId, id, clock.now()),
    check,
    create,
    createOnce: createCreateOnce(deps, create, createSecretsOf(store, seal)),
    edit: createEdit(deps, check),
    remove: createRemove(deps),
    ...createPause(deps),
    ...createRotate(deps, seal, random),
    ...createSendAgain(deps, enqueue, wake),
  };
}

export type Webhooks = ReturnType<typeof createWebhooks>;
