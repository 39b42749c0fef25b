import type { By } from '../../../deploys/accounts/audit.ts';
import { internetPolicy } from '../../../deploys/delivery/policy.ts';
import { createSeal, createSecretsOf } from '../../../deploys/webhooks/seal.ts';
import { createWebhooks } from '../../../deploys/webhooks/webhooks.ts';
import { Secret } from '../../../shared/secret.ts';
import { createVirtualClock } from '../../fakes/chain-clock.ts';
import { addressOf } from '../../fakes/chain.ts';
import { startQueue } from '../outbox/queue.ts';
import { random } from '../../started/gateway.ts';

export const [ME, OTHER] = [1, 2];
export const byAccount = (accountId: number): By => ({
  accountId,
  actor: { kind: 'user', userId: `u${accountId}` },
});
export const byMe = byAccount(ME);
export const HOUR_MS = 3_600_000;
export const URL_TEXT = 'https://hooks.example.com/sluice?a=b';
export const never = new AbortController().signal;

/** The rules of the product, over names that a test answers for. */
export function scriptedPolicy() {
  const names = new Map<string, readonly string[] | Error>();
  const asked: string[] = [];
  const resolve = async (host: string) => {
    asked.push(host);
    const answer = names.get(host) ?? ['93.184.215.14'];
    if (answer instanceof Error) throw answer;
    return answer;
  };
  return { policy: { ...internetPolicy(['console.example.com']), resolve }, names, asked };
}

export const testSeal = createSeal([new Secret(Buffer.alloc(32, 1).toString('base64'))], random);

/** The webhooks of two accounts, over a queue in memory; programs A and B are watched. */
export function startWebhooks() {
  const queue = startQueue();
  const clock = createVirtualClock();
  const network = scriptedPolicy();
  const watched = new Set<string>([addressOf('A'), addressOf('B')]);
  let woken = 0;
  const webhooks = createWebhooks({
    store: queue.store,
    clock,
    seal: testSeal,
    policy: network.policy,
    isWatched: (address) => watched.has(address),
    enqueue: queue.enqueue,
    wake: () => woken++,
    random,
  });
  const secretsOf = createSecretsOf(queue.store, testSeal);

  /** A webhook that must be made. */
  async function made(accountId = ME, given = {}) {
    const created = await webhooks.create(byAccount(accountId), { url: URL_TEXT, ...given }, never);
    if (created.kind !== 'created') throw new Error(created.kind);
    return { ...created.webhook, secret: created.secret.reveal() };
  }
  /** The secrets that an attempt at this instant signs with. */
  function signedWith(id: string) {
    const { current, next } = secretsOf(id, clock.now());
    return [current.reveal(), next?.reveal()];
  }

  return {
    ...webhooks,
    ...network,
    queue,
    clock,
    made,
    signedWith,
    woken: () => woken,
    [Symbol.dispose]: queue[Symbol.dispose],
  };
}
