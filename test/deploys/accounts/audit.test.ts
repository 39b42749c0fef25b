import { describe, expect, test } from 'bun:test';
import {
  type Action,
  type Actor,
  AUDIT_KEPT_MS,
  AUDIT_MIGRATIONS,
  createAudit,
} from '../../../deploys/accounts/audit.ts';
import type { KeyId } from '../../../shared/keys/api-key.ts';
import { opened } from '../../started/gateway.ts';
import { explained } from '../explained.ts';

const key: Actor = { kind: 'key', keyId: 'k1' as KeyId }; // any text will do here

function started() {
  const store = opened(':memory:', AUDIT_MIGRATIONS);
  const audit = createAudit(store);
  const note = (atMs: number, action: Action, accountId?: number, actor = key) =>
    audit.note({ atMs, actor, action, accountId, subject: `s${atMs}`, detail: { at: atMs } });
  return { ...audit, store, note, [Symbol.dispose]: () => store.close() };
}

describe('the audit log', () => {
  test('is read in pages, of one account or of all', () => {
    using audit = started();
    for (let i = 1; i <= 6; i++) audit.note(i, 'webhook.edit', i % 2);
    const ids = (page: Parameters<typeof audit.list>[0]) => audit.list(page).map(({ id }) => id);
    expect(ids({ limit: 4 })).toEqual([6, 5, 4, 3]);
    expect(ids({ limit: 4, before: 3 })).toEqual([2, 1]);
    expect(ids({ limit: 2, accountId: 1 })).toEqual([5, 3]);
    expect(ids({ limit: 2, accountId: 1, before: 3 })).toEqual([1]);
    expect(ids({ limit: 2, accountId: 7 })).toEqual([]);
    for (let i = 7; i <= 101; i++) audit.note(i, 'webhook.edit', 1);
    expect(audit.list({ limit: 1_000 })).toHaveLength(100);
  });

  test.each(['UPDATE audit SET subject = 1', 'DELETE FROM audit'])('refuses %s', (sql) => {
    using audit = started();
    audit.note(5, 'webhook.create', 1);
    expect(() => audit.store.run(sql)).toThrow('only added to');
    expect(audit.list({ limit: 1 })).toHaveLength(1);
  });

  test('forgets what is more than 400 days older than its newest entry, in portions (§6 audit log)', () => {
    using audit = started();
    for (let i = 0; i < 600; i++) audit.note(0, 'webhook.edit', 1);
    audit.note(1, 'webhook.edit', 1);
    expect(audit.prune()).toBe(false);
    audit.note(AUDIT_KEPT_MS, 'webhook.edit', 1);
    const left = () => audit.store.query('SELECT count(*) FROM audit').values()[0]?.[0];
    const prunes = [1, 2, 3].map(() => [audit.prune(), left()]);
    expect(prunes).toEqual([
      [true, 102],
      [true, 2],
      [false, 2],
    ]);
  });
});

describe('the audit log is filtered', () => {
  test('by account, actor and action, of those that were ever noted, alone and together', () => {
    using audit = started();
    const ann: Actor = { kind: 'user', userId: 'ann' };
    audit.note(1, 'key.create', 1);
    audit.note(2, 'key.create', 2, ann);
    audit.note(3, 'key.revoke', 2, ann);
    audit.note(4, 'key.create', 2, { kind: 'command-line' });
    const ids = (page: Omit<Parameters<typeof audit.list>[0], 'limit'>) =>
      audit.list({ ...page, limit: 9 }).map(({ id }) => id);
    expect(audit.actions()).toEqual(['key.create', 'key.revoke']);
    expect(ids({ actorId: 'ann' })).toEqual([3, 2]);
    expect(ids({ actorId: null })).toEqual([4]);
    expect(ids({ action: 'key.create' })).toEqual([4, 2, 1]);
    expect(ids({ action: 'key.create', actorId: 'ann' })).toEqual([2]);
    expect(ids({ accountId: 2, action: 'key.create' })).toEqual([4, 2]);
    expect(ids({ accountId: 2, action: 'key.create', actorId: 'ann' })).toEqual([2]);
    expect(ids({ accountId: 2, actorId: 'ann', before: 3 })).toEqual([2]);
  });

  test('by indexes alone, however the filters are combined', () => {
    using audit = started();
    const combined = [{}, { accountId: 1 }].flatMap((first) =>
      [{}, { actorId: 'ann' }].flatMap((second) =>
        [{}, { action: 'key.create' }].map((third) => ({ ...first, ...second, ...third, limit: 9 })),
      ),
    );
    const statements = explained(audit.store, (store) => {
      const { list } = createAudit(store);
      for (const page of combined) list(page);
    });
    expect(statements).toHaveLength(1 + combined.length);
    for (const { steps } of statements) {
      expect(steps.join()).not.toContain('TEMP B-TREE');
      expect(steps.filter((step) => /^SCAN audit$/.test(step))).toEqual([]);
    }
  });
});
