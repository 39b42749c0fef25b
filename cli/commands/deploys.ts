import { createChanges } from '../../deploys/accounts/changes.ts';
import { createAudit } from '../../deploys/accounts/audit.ts';
import { type Books, COMMAND_LINE, onConfig, withBooks } from '../frame/books.ts';
import { done, failed, type Outcome, type World } from '../frame/command.ts';

const NO_REDIS =
  'This installation has no storage.redis: nothing says which copy of its database is newer, and there is nothing to take over from.';

/** An operator's word for which of several copies of the accounts database counts; without a further question. */
export const takeOver = onConfig(
  'deploys take-over',
  'Make this database count although a newer copy was published: that copy is then refused.',
  (config, { world }) => {
    if (config.storage.redisUrl === undefined) return failed(NO_REDIS);
    return withBooks<Outcome>(config, world, (books) => requested(books, world));
  },
  'is-absent',
);

function requested({ store }: Books, { clock }: World): Outcome {
  const changes = createChanges(store);
  const { note } = createAudit(store);
  const { generation, behind } = changes.last();
  const request = store.transaction(() => {
    changes.requestTakeOver();
    const action = 'deploys.take-over';
    const detail = { generation, published_generation: behind };
    note({ atMs: clock.now(), actor: COMMAND_LINE, action, subject: changes.origin, detail });
  });
  request.immediate();
  const text =
    'deploys publishes this database and sends its webhooks as soon as it runs and Redis answers. Changes that only another copy has are lost; keys that were revoked there stay revoked.';
  const record = { take_over: 'requested', generation, published_generation: behind };
  return done(text, record);
}
