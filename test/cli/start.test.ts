import { Database } from 'bun:sqlite';
import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { getBase58Decoder } from '@solana/kit';
import { PROGRAMS_PATH } from '../../deploys/api/programs.ts';
import { ACCOUNTS_FILE } from '../../shared/keys/schema.ts';
import { takeLock } from '../../shared/store/lock.ts';
import { result, startBackend } from '../fakes/backend.ts';
import { until } from '../started/stack.ts';
import { objectsOf, ROOT, sluice } from './sluice.ts';
import { begin, gone, installation, processesOf } from './installation.ts';

setDefaultTimeout(60_000);
const PROGRAM = 'goonERTdGsjnkZqWuVjs73BZ3Pb9qoCUdBUL17BnS5j';
type Shown = Record<'program_id' | 'status' | 'deployed_at', string | null> & { deploy_slot: number | null };
type Installed = Awaited<ReturnType<typeof installation>>;

/** Ends all that runs of an installation, and removes it. */
async function remove(installed: Installed): Promise<void> {
  for (const pid of processesOf(installed)) process.kill(pid, 'SIGKILL');
  await gone(installed);
  installed[Symbol.dispose]();
}

/** Runs a line as if it were pasted into a terminal. */
async function pasted(line: string): Promise<string> {
  const shell = Bun.spawn(['sh', '-c', line], { stdout: 'pipe', stderr: 'inherit' });
  return shell.stdout.text();
}

/** Pastes a line again and again, as a user would, until the answer is not an error. */
async function pastedUntilRead(line: string): Promise<string> {
  for (;;) {
    const answer = await pasted(line);
    if (!answer.includes('not available yet')) return answer;
    await Bun.sleep(100);
  }
}

const goesOn = (port: number) =>
  `That one goes on; nothing was started. By this config, the gateway is at http://127.0.0.1:${port}/.`;

const linesOf = (banner: string) => banner.split('\n').filter((line) => line.startsWith('curl '));

const hasProc = existsSync('/proc/self/cmdline');

describe.skipIf(!hasProc)('start, where /proc shows the processes', () => {
  const address = (byte: number) => getBase58Decoder().decode(new Uint8Array(32).fill(byte));
  const accountText = (pubkey: string, lamports: number) =>
    JSON.stringify({
      pubkey,
      account: { lamports, data: ['AQID', 'base64'], owner: address(7), executable: false, rentEpoch: 0 },
    });
  let installed: Installed;
  let started: ReturnType<typeof begin>;
  let banner: string;
  let args: readonly string[];
  beforeAll(async () => {
    installed = await installation('accounts = "accounts"\n');
    const named = join(installed.path, 'one.json');
    mkdirSync(join(installed.path, 'accounts'));
    writeFileSync(named, accountText(address(1), 11));
    args = ['--account', address(2), named, '--account', '-', named];
  });
  afterAll(() => remove(installed));

  const key = () => /sluice_\w{38}/.exec(banner)?.[0] ?? 'no key';
  const post = (body: object, of = key()) =>
    fetch(`http://127.0.0.1:${installed.ports.gateway}/`, {
      method: 'POST',
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...body }),
      headers: { 'content-type': 'application/json', 'x-token': of },
    });
  const command = async (...words: string[]) =>
    objectsOf(await sluice(installed.path, [...words, '--config', installed.config, '--json']));

  test('a bad file of accounts is a sentence before anything starts', async () => {
    const file = join(installed.path, 'accounts/a.json');
    writeFileSync(file, accountText('somebody', 1));
    const refused = await begin(installed, { args }).ended;
    expect([refused.code, refused.out, refused.err]).toEqual([
      1,
      '',
      'accounts/a.json: pubkey: found "somebody", expected an address in base58\n',
    ]);
    expect(existsSync(installed.dataDir)).toBe(false);
    writeFileSync(file, accountText(address(3), 33));
  });

  test('P8 prints within a minute two addresses, a demo key and lines that work when they are pasted', async () => {
    if (Bun.which('curl') === null) throw new Error('this test pastes curl lines and needs curl');
    started = begin(installed, { args });
    banner = await started.ready;
    const { ports, dataDir } = installed;
    expect(banner).toContain(`Gateway        http://127.0.0.1:${ports.gateway}/`);
    expect(banner).toContain(`Console        http://127.0.0.1:${ports.deploys}/`);
    expect(readFileSync(join(dataDir, 'demo-key'), 'utf8')).toBe(`${key()}\n`);
    expect(statSync(join(dataDir, 'demo-key')).mode & 0o777).toBe(0o600);

    const [file = ''] = /^\/.*\/first-operator-link$/m.exec(banner) ?? [];
    expect([file, statSync(file).mode & 0o777]).toEqual([join(dataDir, 'first-operator-link'), 0o600]);
    const link = readFileSync(file, 'utf8').trim();
    expect(link).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/first-operator\?token=[\w-]{43}$/);
    const form = await (await fetch(link)).text();
    expect(form).toContain(new URL(link).searchParams.get('token') ?? 'no token');
    const [getSlot, programs] = linesOf(banner);
    expect(JSON.parse(await pasted(getSlot ?? ''))).toEqual({
      jsonrpc: '2.0',
      id: 1,
      result: expect.any(Number),
    });
    expect(JSON.parse(await pastedUntilRead(programs ?? '')).programs).toHaveLength(115);
    expect(banner).not.toContain('token=');
  });

  test('accounts of a folder and of --account are on the chain', async () => {
    const balanceOf = async (of: string) =>
      Object(await (await post({ method: 'getBalance', params: [of] })).json()).result.value;
    expect(await Promise.all([1, 2, 3].map((byte) => balanceOf(address(byte))))).toEqual([11, 11, 33]);
  });

  test('a running installation notices the command line: a key works and ends, a program is redeployed and shown with its new slot (§3)', async () => {
    const takes = async (of: string, wanted: number) => {
      const before = performance.now();
      while ((await post({ method: 'getSlot' }, of)).status !== wanted) await Bun.sleep(20);
      return performance.now() - before;
    };
    await command('account', 'create', 'late');
    const [made] = (await command('key', 'create', 'late')) as { key: string; key_id: string }[]; // the documented shape
    if (made === undefined) throw new Error('no key was made');
    expect(await takes(made.key, 200)).toBeLessThan(2_000);
    await command('key', 'revoke', made.key_id);
    expect(await takes(made.key, 401)).toBeLessThan(2_000);

    const [redeployed] = await command('localnet', 'upgrade', PROGRAM);
    expect(redeployed).toEqual({
      program_id: PROGRAM,
      previous_slot: expect.any(Number),
      deploy_slot: expect.any(Number),
    });
    const { previous_slot, deploy_slot } = redeployed as { previous_slot: number; deploy_slot: number }; // asserted above
    expect(deploy_slot).toBeGreaterThan(previous_slot);
    // Before the one request all programs have been read since, and their block times looked up.
    using database = new Database(join(installed.dataDir, ACCOUNTS_FILE), { readonly: true });
    const untimed = database.query<{ n: number }, [number]>(
      `SELECT max(deploy_slot) = ? AND count(*) = count(block_times.slot) AS n
       FROM programs LEFT JOIN block_times ON slot = deploy_slot WHERE deploy_slot IS NOT NULL`,
    );
    await until(async () => untimed.get(deploy_slot)?.n === 1);
    const url = `http://127.0.0.1:${installed.ports.deploys}${PROGRAMS_PATH}`;
    const response = await fetch(url, { headers: { 'x-token': key() } });
    const { programs: shown }: { programs: Shown[] } = JSON.parse(await response.text());
    for (const { deploy_slot: slot, deployed_at: at } of shown) expect(slot === null).toBe(at === null);
    expect([shown.length, shown[0]?.program_id]).toEqual([115, PROGRAM]);
    expect(new Set(shown.map((each) => each.status)).size).toBe(4);
  });

  test('M26 a second one on a data directory says which process the first is, and changes nothing of it', async () => {
    const { dataDir, ports } = installed;
    const link = readFileSync(join(dataDir, 'first-operator-link'), 'utf8').trim();
    const second = await begin(installed).ended;
    const running = `\`bun start\` is already running on the data directory ${dataDir} (process ${started.pid}).`;
    expect([second.code, second.out, second.err]).toEqual([1, '', `${running} ${goesOn(ports.gateway)}\n`]);
    expect(await (await fetch(link)).text()).toContain(new URL(link).searchParams.get('token') ?? 'no token');
    const restored = await sluice(installed.path, ['restore', dataDir, '--config', installed.config]);
    expect([restored.code, restored.err]).toEqual([1, `${running} Stop it first; nothing was changed.\n`]);
  });

  test('P8 Ctrl-C ends all with 0, and no log has a secret', async () => {
    process.kill(-started.pid, 'SIGINT');
    expect(await started.ended).toMatchObject({ code: 0 });
    expect(await gone(installed)).toEqual([]);
    const logOf = (app: string) => readFileSync(join(installed.dataDir, `${app}.log`), 'utf8');
    for (const app of ['localnet', 'gateway', 'deploys']) expect(logOf(app)).not.toBe('');
    expect(logOf('gateway')).not.toContain(key());
    expect(logOf('deploys')).not.toContain('first-operator');
  });
});

describe.skipIf(!hasProc)('a start', () => {
  let installed: Installed;
  afterEach(() => remove(installed));

  test('a port that is taken is one clear sentence, and nothing is left running', async () => {
    installed = await installation();
    const { ports } = installed;
    await using _taken = startBackend(undefined, ports.gateway);
    const { code, err } = await begin(installed).ended;
    expect(code).toBe(1);
    expect(err).toContain(
      `The address 127.0.0.1:${ports.gateway} cannot be listened on (another process has it)`,
    );
    expect(err).toContain(
      'gateway exited (code 1), so this start ends, with every app that it began. Its log is ',
    );
    expect(await gone(installed)).toEqual([]);
  });

  test('M26 one beside an app that was started by hand starts nothing', async () => {
    installed = await installation();
    const locking = takeLock(installed.dataDir, 'gateway');
    const { code, err } = await begin(installed).ended;
    if (locking.kind === 'locked') locking.lock.release();
    expect([code, err]).toEqual([
      1,
      `gateway is already running on the data directory ${installed.dataDir} (process ${process.pid}). ${goesOn(installed.ports.gateway)}\n`,
    ]);
    expect(existsSync(join(installed.dataDir, ACCOUNTS_FILE))).toBe(false);
  });

  test('--account is refused where no embedded chain runs', async () => {
    installed = await installation('[[backends]]\nname = "a"\nurl = "http://127.0.0.1:1"\n');
    const { code, out, err } = await begin(installed, { args: ['--account', '-', 'a.json'] }).ended;
    expect([code, out]).toEqual([1, '']);
    expect(err).toBe(
      'start --account loads accounts into the embedded chain, which does not run: the config has backends.\n',
    );
  });

  test('with --json says in one object where it is; kill -9 of it leaves no process behind', async () => {
    installed = await installation();
    const started = begin(installed, { args: ['--json'] });
    const [running] = objectsOf({ code: 0, out: await started.ready, err: '' });
    const gateway = `http://127.0.0.1:${installed.ports.gateway}/`;
    expect(running).toMatchObject({ gateway, demo_key: expect.any(String) });
    expect(processesOf(installed).length).toBeGreaterThanOrEqual(4);
    started.child.kill('SIGKILL');
    expect(await gone(installed)).toEqual([]);
  });

  test('kill -9 of the package runner above it leaves no process behind', async () => {
    installed = await installation();
    const started = begin(installed, { command: [process.execPath, 'run', 'start'], cwd: ROOT });
    await started.ready;
    started.child.kill('SIGKILL');
    expect(await gone(installed)).toEqual([]);
  });

  test('an app that dies takes the others with it, and is named', async () => {
    installed = await installation();
    const started = begin(installed);
    await started.ready;
    const deploys = processesOf(installed).find((pid) =>
      readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('deploys/main.ts'),
    );
    process.kill(deploys ?? 0, 'SIGKILL');
    const { code, err } = await started.ended;
    expect(code).toBe(1);
    expect(err).toContain(
      'deploys exited (SIGKILL), so this start ends, with every app that it began. Its log is ',
    );
    expect(await gone(installed)).toEqual([]);
  });

  test('with backends of its own it runs no chain and says how to create a key; a stop waits for the answer under way, and a second Ctrl-C does not', async () => {
    const arrived = Promise.withResolvers<void>();
    await using backend = startBackend((seen) => {
      if (seen.method !== 'getBalance') return result(seen, '1');
      arrived.resolve();
      return new Promise<Response>(() => {});
    });
    installed = await installation(`[[backends]]\nname = "own"\nurl = "${backend.url}"\n`);
    const { config, dataDir, path, ports } = installed;
    const started = begin(installed);
    const banner = await started.ready;
    expect(banner).toContain('bun run sluice key create NAME');
    expect(banner).not.toContain('sluice_');
    for (const file of ['localnet.log', 'demo-key']) expect(existsSync(join(dataDir, file))).toBe(false);
    const command = (...args: string[]) => sluice(path, [...args, '--config', config, '--json']);
    await command('account', 'create', 'waiter');
    const [made] = objectsOf(await command('key', 'create', 'waiter')) as { key: string }[]; // the documented shape
    const call = fetch(`http://127.0.0.1:${ports.gateway}/?api-key=${made?.key}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"jsonrpc":"2.0","id":1,"method":"getBalance","params":["11111111111111111111111111111111"]}',
    }).catch(() => 'cut');
    await arrived.promise;
    process.kill(-started.pid, 'SIGINT');
    await Bun.sleep(1_000); // the time in which a stop would have ended everything; a second wish counts after 500 ms
    expect(processesOf(installed).length).toBeGreaterThanOrEqual(2);
    process.kill(-started.pid, 'SIGINT');
    expect(await started.ended).toMatchObject({ code: 130 });
    expect(await call).toBe('cut');
    expect(await gone(installed)).toEqual([]);
  });
});
