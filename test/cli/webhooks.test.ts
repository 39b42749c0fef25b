import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { join } from 'node:path';
import { createAudit } from '../../deploys/accounts/audit.ts';
import { DEPLOYS_MIGRATIONS } from '../../deploys/schema.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../shared/keys/schema.ts';
import { opened, temporaryFolder } from '../started/gateway.ts';
import { objectsOf, sluice } from './sluice.ts';

setDefaultTimeout(60_000);
/** A literal address, so that no name is looked up. */
const URL_TEXT = 'https://93.184.215.14/in?token=t';
const RAYDIUM = '675kPX9MHTjS2zt1qfr1NYHuzeLXfQM9H24wFSUt1Mp8';

const folder = temporaryFolder();
const run = (...args: string[]) => sluice(folder.path, ['webhook', ...args]);
const json = async (...args: string[]) => objectsOf(await run(...args, '--json'));
const withStore = <T>(act: (store: ReturnType<typeof opened>) => T) => {
  using store = opened(join(folder.path, 'data', ACCOUNTS_FILE), {
    ...ACCOUNTS_MIGRATIONS,
    ...DEPLOYS_MIGRATIONS,
  });
  return act(store);
};
afterAll(() => folder[Symbol.dispose]());

describe('webhooks on the command line', () => {
  let id: string;
  beforeAll(async () => {
    for (const name of ['acme', 'other']) await sluice(folder.path, ['account', 'create', name]);
    const [made] = (await json('create', 'acme', URL_TEXT, '--description', 'Core')) as {
      webhook: { id: string };
      secret: string;
    }[]; // the record of the API
    id = made?.webhook.id ?? '';
    expect(made?.secret).toMatch(/^whsec_[0-9a-f]{64}$/);
  });

  test('are edited, paused and resumed, and listed without the secret part of their URL', async () => {
    expect(await json('edit', 'acme', id, '--programs', RAYDIUM)).toMatchObject([
      { id, programs: [RAYDIUM] },
    ]);
    expect(await json('edit', 'acme', id, '--programs', 'all')).toMatchObject([{ programs: null }]);
    expect((await run('edit', 'acme', id)).err).toContain('requires --url, --programs or --description');
    expect(await json('pause', 'acme', id)).toMatchObject([{ state: 'paused' }]);
    expect((await run('test', 'acme', id)).err).toContain('The webhook is paused');
    expect(await json('resume', 'acme', id)).toMatchObject([{ state: 'active' }]);
    const { out } = await run('list', 'acme');
    expect(out).toContain('93.184.215.14');
    expect(out).not.toContain('token');
  });

  test('get new secrets in stages', async () => {
    const { out } = await run('rotate', 'acme', id, '--takes-over', '1h');
    expect(out).toMatch(/won't be shown again:\nwhsec_[0-9a-f]{64}\n$/);
    expect((await run('rotate', 'acme', id)).err).toContain('A new secret is already pending');
    expect(await json('cancel-rotation', 'acme', id)).toMatchObject([{ next_secret_at: null }]);
  });

  test('are tested and sent to again', async () => {
    const [{ delivery_id } = { delivery_id: '' }] = (await json('test', 'acme', id)) as {
      delivery_id: string;
    }[]; // the record of the API
    expect(await json('deliveries', 'acme', id)).toMatchObject([
      { id: delivery_id, event: 'ping', state: 'queued' },
    ]);
    expect((await run('resend', 'acme', delivery_id)).err).toContain('already scheduled');
    withStore((store) =>
      store.run("UPDATE deliveries SET state = 'failed', next_attempt_at_ms = NULL, finished_at_ms = 1"),
    );
    expect(await json('resend', 'acme', delivery_id)).toEqual([{ deliveries: 1 }]);
    expect(await json('resend-failed', 'acme', id, '--since', '1h')).toEqual([{ deliveries: 0 }]);
  });

  test('of another account are not there', async () => {
    for (const verb of ['pause', 'delete', 'test', 'rotate'])
      expect((await run(verb, 'other', id)).err).toContain(`no webhook with ID "${id}"`);
    expect((await run('list', 'nobody')).err).toContain('No account named "nobody"');
  });

  test('are deleted, and every change is noted as made on the command line', async () => {
    expect(await json('delete', 'acme', id)).toEqual([{ id, deleted: true }]);
    const entries = withStore((store) => createAudit(store).list({ accountId: 1, limit: 100 }));
    const ofWebhooks = entries.filter(({ action }) => action.startsWith('webhook.'));
    expect(new Set(ofWebhooks.map(({ actorKind }) => actorKind))).toEqual(new Set(['command-line']));
    expect(ofWebhooks[0]?.action).toBe('webhook.delete');
  });
});
