import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { hashOf, keyIdOf, makeApiKey, readApiKey } from '../../../shared/keys/api-key.ts';
import type { Carried } from '../../../shared/keys/carrier.ts';
import { createIdentify } from '../../../shared/keys/identify.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../../shared/keys/schema.ts';
import type { Store } from '../../../shared/store/open.ts';
import { createVirtualClock } from '../../fakes/chain-clock.ts';
import { addKey, opened, temporaryFolder } from '../../started/gateway.ts';

const clock = createVirtualClock();
let folder: ReturnType<typeof temporaryFolder>;
/** The accounts as another process writes them, in a connection of its own. */
let written: Store;
let key: string;
beforeEach(() => {
  folder = temporaryFolder();
  written = opened(join(folder.path, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
  key = addKey(written, 'trial');
});
afterEach(() => {
  written.close();
  folder[Symbol.dispose]();
});

function reader() {
  const store = opened(join(folder.path, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
  const { identify, refresh } = createIdentify(store, clock);
  return { ask: (text: string) => identify({ kind: 'text', text }), identify, refresh, store };
}

/** The id of a key that is one. */
function idOf(text: string): string {
  const read = readApiKey(text);
  return read === undefined ? '' : keyIdOf(hashOf(read));
}

describe('identify', () => {
  test('knows an active key: its id, account, plan and allowance', () => {
    const caller = { keyId: idOf(key) as never, accountId: 1, plan: 'trial', creditsGranted: 0 }; // the brand
    expect(reader().ask(key)).toEqual({ kind: 'known', caller });
  });

  test.each<[Carried, string]>([
    [{ kind: 'none' }, 'missing-key'],
    [{ kind: 'conflict' }, 'invalid-key'],
    [{ kind: 'text', text: 'nonsense' }, 'invalid-key'],
    [{ kind: 'text', text: makeApiKey(randomBytes) }, 'invalid-key'],
  ])('%p is no caller but a %s (spec 5.3)', (carried, kind) => {
    expect<string>(reader().identify(carried).kind).toBe(kind);
  });

  test('sees a change of plan and a revocation, by another process, at the next refresh', () => {
    const { ask, refresh } = reader();
    expect(ask(key)).toMatchObject({ caller: { plan: 'trial' } });
    written.run("UPDATE accounts SET plan = 'pro'");
    refresh();
    expect(ask(key)).toMatchObject({ caller: { plan: 'pro' } });
    written.run('UPDATE keys SET revoked_at_ms = 1');
    refresh();
    expect(ask(key).kind).toBe('invalid-key');
  });

  test('sees a key that was unknown before, at the next refresh', () => {
    const { ask, refresh } = reader();
    written.run('UPDATE keys SET revoked_at_ms = 1');
    expect(ask(key).kind).toBe('invalid-key');
    written.run('UPDATE keys SET revoked_at_ms = NULL');
    expect(ask(key).kind).toBe('invalid-key');
    refresh();
    expect(ask(key).kind).toBe('known');
  });

  test('ends an expiring key at its millisecond, without a refresh', async () => {
    written.run('UPDATE keys SET expires_at_ms = ?', [clock.now() + 1_000]);
    const { ask } = reader();
    await clock.advance(999);
    expect(ask(key).kind).toBe('known');
    await clock.advance(1);
    expect(ask(key).kind).toBe('invalid-key');
  });

  test('refuses the keys of a suspended account', () => {
    written.run('UPDATE accounts SET suspended = 1');
    expect(reader().ask(key).kind).toBe('invalid-key');
  });

  test('goes on knowing known keys while the store does not answer, and says so of the others', () => {
    const { ask, refresh, store } = reader();
    const other = addKey(written, 'trial');
    expect(ask(key).kind).toBe('known');
    store.run('ALTER TABLE keys RENAME TO keys_gone');
    store.run('ALTER TABLE revision RENAME TO revision_gone');
    refresh();
    expect(ask(key).kind).toBe('known');
    expect(ask(other).kind).toBe('check-unavailable');
    store.run('ALTER TABLE keys_gone RENAME TO keys');
    expect(ask(other).kind).toBe('known');
  });
});
