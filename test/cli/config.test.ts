import { afterAll, describe, expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../shared/keys/schema.ts';
import { opened, temporaryFolder } from '../started/gateway.ts';
import { startRedis } from '../started/redis.ts';
import { objectsOf, sluice } from './sluice.ts';

const folder = temporaryFolder();
const run = (...args: string[]) => sluice(folder.path, args);
afterAll(() => folder[Symbol.dispose]());

function written(name: string, text: string): string {
  const path = join(folder.path, name);
  writeFileSync(path, text);
  return path;
}

/** The check of a config, and its notes. */
async function check(text: string) {
  const ended = await run('config', 'check', written('checked.toml', text));
  return { ...ended, notes: ended.out.match(/^Note: .*$/gm) ?? [] };
}

describe('config check', () => {
  test('of a folder without a config is the embedded default', async () => {
    const { code, out } = await run('config', 'check');
    expect(code).toBe(0);
    expect(out.trimEnd()).toEndWith(`data in ${join(folder.path, 'data')}.`);
    expect(out).toStartWith(
      `OK: the embedded default (no sluice.toml in ${folder.path}): the embedded chain as the backend; plans trial, starter,`,
    );
  });
  test('reports every problem on a line of its own, and shows no secret', async () => {
    const path = written('bad.toml', '[gateway]\nlisten = "x"\nbogus = 1\n[storage]\nsecret = "hunter2"\n');
    const { code, out, err } = await run('config', 'check', path);
    expect([code, out]).toEqual([1, '']);
    expect(
      err
        .trimEnd()
        .split('\n')
        .map((line) => line.slice(path.length + 2).split(':')[0]),
    ).toEqual(['gateway.listen', 'gateway.bogus', 'storage.secret']);
    expect(err).not.toContain('hunter2');
    const told = await run('config', 'check', path, '--json');
    expect(objectsOf(told)).toEqual([{ ok: false, problems: told.err.trimEnd().split('\n') }]);
  });
  test('P6 shows no value under a key that it does not know, nor one that is no table', async () => {
    const { code, err } = await check(
      '[storage]\nsecert = "hunter2"\n[deploys]\noidc = "hunter3"\n[deploy]\nrpc_key = "hunter4"\n[plans]\npro = "hunter5"\n',
    );
    expect([code, err]).toEqual([1, expect.not.stringContaining('hunter')]);
    expect(err).toContain('storage.secert: unknown key (known keys: ');
    for (const value of ['"hunter6', 'hunter7', '"a" hunter8']) {
      const broken = await check(`[storage]\nsecret = ${value}\n`);
      expect([broken.code, broken.err]).toEqual([1, expect.not.stringContaining('hunter')]);
      expect(broken.err).toContain('is not valid TOML: ');
    }
  });
  test.each(['http://h:6379', 'redis://', 'redis://h/x', 'h:6379', 'redis://user:100%@h'])(
    'P6 refuses %s as storage.redis, without showing it',
    async (redis) => {
      const { code, err } = await check(`[storage]\nredis = "${redis}"\n`);
      const found = expect.stringContaining('storage.redis: found an invalid value (not shown)');
      expect([code, err]).toEqual([1, found]);
      expect(err).not.toContain(`"${redis}"`);
    },
  );
  test('P6 notes a Redis that cannot be reached or refuses the password', async () => {
    await using redis = await startRedis(['--requirepass', 'hunter2']);
    const notesOf = async (url: string) => {
      const { code, out, notes } = await check(`[storage]\nredis = "${url}"\n`);
      expect([code, out]).toEqual([0, expect.not.stringContaining('hunter')]);
      return notes.filter((note) => note.startsWith('Note: Redis'));
    };
    const host = `127.0.0.1:${redis.port}`;
    const noted = (reason: string) => [`Note: Redis ${host} can't be used from this host (${reason}).`];
    expect(await notesOf(`redis://:hunter2@${host}`)).toEqual([]);
    expect(await notesOf(`redis://${host}`)).toEqual(noted('NOAUTH'));
    expect(await notesOf(`redis://:hunter3@${host}`)).toEqual(noted('WRONGPASS'));
    await redis.die();
    expect(await notesOf(`redis://${host}`)).toEqual(noted('ECONNREFUSED'));
  });
  test('notes what this version does not do yet', async () => {
    const path = written(
      'notes.toml',
      '[gateway]\nprocesses = 4\n[storage]\nredis = "redis://127.0.0.1:1"\n[[backends]]\nname = "a"\nurl = "http://h"\n',
    );
    const { code, out } = await run('config', 'check', '--config', path);
    expect(code).toBe(0);
    expect(out.match(/^Note: .*$/gm)).toEqual([
      'Note: with storage.redis, accounts, plans and prices come from the host that runs deploys; run deploys on one host only.',
      "Note: Redis 127.0.0.1:1 can't be used from this host (ECONNREFUSED).",
    ]);
    expect(objectsOf(await run('config', 'check', path, '--json'))).toMatchObject([
      { ok: true, source: path },
    ]);
  });
  test('notes what a pool of backends will not answer, and what is not what it looks like', async () => {
    const { code, notes } = await check(
      '[[backends]]\nname = "d"\nurl = "http://h"\nprofile = "das"\n' +
        '[[backends]]\nname = "s"\nurl = "http://h"\nlanes = ["state"]\nmethods = ["requestAirdop", "sendSmart"]\nheaders = { authorization = "Bearer env:TOKEN" }\n',
    );
    expect([code, ...notes]).toEqual([
      0,
      'Note: no backend serves the lanes scan, archive, send; their methods return error -32601.',
      "Note: backend s declares requestAirdop, which Sluice doesn't know: it is treated as a read and retried on another backend if one fails.",
      "Note: backend s declares sendSmart, which Sluice doesn't know: it is sent only once, like a transaction.",
      'Note: header authorization of backend s is sent literally: "env:NAME" must be the whole value.',
    ]);
  });

  test('names every file that cannot be read', async () => {
    const { code, err } = await check(
      '[gateway]\ntls = { cert = "/nowhere/c.pem", key = "/nowhere/k.pem" }\n[deploys]\nprograms = "/nowhere/p.json"\n[localnet]\naccounts = "/nowhere/a"\n',
    );
    const [tls, programs, accounts] = err.split('\n');
    expect([code, tls]).toEqual([
      1,
      'The file /nowhere/c.pem of gateway.tls cannot be read (it does not exist).',
    ]);
    expect(programs).toStartWith('The list of programs /nowhere/p.json cannot be read');
    expect(accounts).toStartWith('localnet.accounts: the folder /nowhere/a cannot be read');
  });

  test.each([
    [['config', 'check', 'none.toml'], 'The config file none.toml cannot be read (it does not exist).'],
    [['config', 'check', 'a', '--config', 'b'], 'config check takes either FILE or --config FILE, not both.'],
  ])('%j is one sentence', async (args, sentence) => {
    expect(await run(...args)).toEqual({ code: 1, out: '', err: `${sentence}\n` });
  });
});

describe('config reload', () => {
  const revision = () => {
    using store = opened(join(folder.path, 'data', ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
    return store.query<{ config: number }, []>('SELECT config FROM revision').get()?.config;
  };
  test('bumps the number that running apps watch', async () => {
    await run('account', 'create', 'a', '--plan', 'none');
    expect(objectsOf(await run('config', 'reload', '--json'))).toEqual([{ config_revision: 2 }]);
    expect((await run('config', 'reload')).out).toContain('Running apps reload its plans and credits');
    expect(revision()).toBe(3);
  });
  test('names the plans that accounts are on and the config has no more', async () => {
    const path = written('gold.toml', '[plans.gold]\nrps = 7\n');
    await run('account', 'create', 'acme', '--plan', 'gold', '--config', path);
    expect((await run('config', 'reload', '--config', path)).out).not.toContain('Note');
    expect((await run('config', 'reload')).out).toContain(
      '\nNote: Plan gold is gone from the config, but accounts still use it: 1. Apps that still have it reload nothing; after a restart they reject its keys with 401.\n',
    );
    await run('account', 'set', 'acme', '--plan', 'pro');
  });
  test('happens by itself when an account is the first on its plan', async () => {
    const path = written('new.toml', '[plans.silver]\nrps = 7\n');
    const before = revision() ?? 0;
    await run('account', 'create', 'second', '--plan', 'silver', '--config', path);
    expect(revision()).toBe(before + 1);
    await run('account', 'create', 'third', '--plan', 'silver', '--config', path);
    await run('account', 'create', 'third', '--plan', 'copper', '--config', path);
    expect(revision()).toBe(before + 1);
    await run('account', 'set', 'third', '--plan', 'scale');
    expect(revision()).toBe(before + 2);
  });
  test.each([
    ['\n', 'is empty.'],
    ['# A comment.\r\n  # Another.', 'is empty.'],
    ['[gateway]\nbogus = 1\n', 'gateway.bogus: unknown key'],
  ])('of a bad config, %j, says why and reloads nothing', async (text, reason) => {
    const before = revision();
    const { code, err } = await run('config', 'reload', '--config', written('reload.toml', text));
    expect([code, err]).toEqual([1, expect.stringContaining(reason)]);
    expect(revision()).toBe(before);
  });
});

describe('programs check', () => {
  test('of the built-in list is fine', async () => {
    const [record] = objectsOf(await run('programs', 'check', '--json'));
    expect(record).toMatchObject({ ok: true, programs: 115 });
  });
  test('reads the list that the config names', async () => {
    const list = written('mine.json', '[{"program_id":"11111111111111111111111111111111","label":"System"}]');
    const config = written('mine.toml', `[deploys]\nprograms = "${list}"\n`);
    expect((await run('programs', 'check', '--config', config)).out).toBe(`OK: ${list}: 1 programs.\n`);
  });
  test.each([
    ['[{"program_id":"x","label":"A"},{"program_id":"11111111111111111111111111111111"}]', 2],
    ['hello', 1],
  ])('reports every problem of a list: %s', async (text, problems) => {
    const path = written('bad.json', text);
    const { code, err } = await run('programs', 'check', path);
    expect([code, err.trimEnd().split('\n').length]).toEqual([1, problems]);
    expect(objectsOf(await run('programs', 'check', path, '--json'))).toMatchObject([
      { ok: false, file: path },
    ]);
  });
});
