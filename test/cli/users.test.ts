import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ACCOUNTS_FILE } from '../../shared/keys/schema.ts';
import { temporaryFolder } from '../started/gateway.ts';
import { objectsOf, sluice } from './sluice.ts';
import { Database } from 'bun:sqlite';

setDefaultTimeout(20_000);

const folder = temporaryFolder();
afterAll(() => folder[Symbol.dispose]());
writeFileSync(join(folder.path, 'sluice.toml'), '[storage]\ndata_dir = "data"\n');

const PASSWORD = 'four plain words together';
const run = (...args: string[]) => sluice(folder.path, [...args, '--json']);
const typed = (line: string, ...args: string[]) => sluice(folder.path, [...args, '--json'], {}, line);
const rows = (sql: string) => {
  using database = new Database(join(folder.path, 'data', ACCOUNTS_FILE), { readonly: true });
  return database.query(sql).all();
};

describe('users from the command line', () => {
  test('are made with a password from standard input, as operators or for an account', async () => {
    await run('account', 'create', 'acme');
    const root = await typed(`${PASSWORD}\n`, 'user', 'create', 'Root@Example.com', '--operator');
    expect([root.err, objectsOf(root)]).toEqual([
      '',
      [{ email: 'root@example.com', role: 'operator', account: null, second_factor: false }],
    ]);
    const bob = await typed(`${PASSWORD}\r\nmore`, 'user', 'create', 'bob@example.com', '--account', 'acme');
    expect(objectsOf(bob)).toMatchObject([{ role: 'customer', account: 'acme' }]);
    expect(objectsOf(await run('user', 'list'))).toMatchObject([
      { email: 'root@example.com' },
      { email: 'bob@example.com' },
    ]);
    const [kept] = rows('SELECT password_hash FROM users') as [{ password_hash: string }]; // the column asked for
    expect(await Bun.password.verify(PASSWORD, kept.password_hash)).toBe(true);
  });

  test.each([
    ['user create a@example.com', PASSWORD, 'user create requires --account NAME or --operator.'],
    ['user create a@example.com --account none', PASSWORD, 'No account named "none"'],
    ['user create a --operator', PASSWORD, '"a" is not an email address.'],
    ['user create a@example.com --operator', 'short', 'at least 12 characters'],
    ['user create a@example.com --operator', '', 'read from standard input'],
    ['user create root@example.com --operator', PASSWORD, 'login for root@example.com already exists'],
    ['user remove a@example.com', '', 'No login for a@example.com'],
  ])('%p with %p is refused in a sentence', async (command, line, sentence) => {
    const { code, err } = await typed(line, ...command.split(' '));
    expect([code, err]).toEqual([1, expect.stringContaining(sentence)]);
  });

  test('lose their sessions by a new password, by being signed out and by being removed', async () => {
    const begin = () => {
      using database = new Database(join(folder.path, 'data', ACCOUNTS_FILE));
      database.run("INSERT INTO sessions SELECT randomblob(32), id, 0, 0, '' FROM users");
    };
    begin();
    const changed = await typed('another four plain words', 'user', 'set-password', 'bob@example.com');
    expect(changed.code).toBe(0);
    expect(rows('SELECT email FROM sessions JOIN users ON users.id = user_id')).toEqual([
      { email: 'root@example.com' },
    ]);
    begin();
    await run('user', 'sign-out', 'root@example.com');
    await run('user', 'remove', 'bob@example.com');
    expect(rows('SELECT * FROM sessions')).toEqual([]);
    expect(objectsOf(await run('user', 'list'))).toHaveLength(1);
  });

  test('lose their second factor when it is reset', async () => {
    using database = new Database(join(folder.path, 'data', ACCOUNTS_FILE));
    database.run("UPDATE users SET totp_secret = x'00'");
    database.run("INSERT INTO backup_codes SELECT id, x'00' FROM users");
    const reset = await run('user', 'reset-second-factor', 'root@example.com');
    expect(objectsOf(reset)).toMatchObject([{ second_factor: false }]);
    expect(rows('SELECT * FROM backup_codes')).toEqual([]);
  });

  test('P2 are another’s at the identity provider only when they were unlinked', async () => {
    using database = new Database(join(folder.path, 'data', ACCOUNTS_FILE));
    database.run("UPDATE users SET subject = 'https://login.example.com 7'");
    expect((await run('user', 'unlink', 'root@example.com')).code).toBe(0);
    expect(rows('SELECT subject FROM users')).toEqual([{ subject: null }]);
  });

  test('have every change in the audit log', () => {
    expect(rows("SELECT action, actor_kind FROM audit WHERE action LIKE 'user.%' ORDER BY id")).toEqual(
      [
        'user.create',
        'user.create',
        'user.set-password',
        'user.sign-out',
        'user.remove',
        'user.second-factor-off',
        'user.unlink',
      ].map((action) => ({ action, actor_kind: 'command-line' })),
    );
  });
});
