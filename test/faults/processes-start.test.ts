import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LEDGER_FILE } from '../../gateway/ledger.ts';
import { ACCOUNTS_FILE } from '../../shared/keys/schema.ts';
import { takeLock } from '../../shared/store/lock.ts';
import { startBackend } from '../fakes/backend.ts';
import { temporaryFolder } from '../started/gateway.ts';
import { freePort } from '../started/ports.ts';
import { runToEnd } from '../started/process.ts';
import { crewConfig, type CrewOptions } from '../started/crew.ts';

let backend: ReturnType<typeof startBackend>;
beforeEach(() => void (backend = startBackend()));
afterEach(() => backend[Symbol.asyncDispose]());

describe.each([1, 3])('%d processes that cannot start say why in one sentence and exit 1', (processes) => {
  const refuse = async (options: Partial<CrewOptions>, spoil: (folder: string) => void = () => undefined) => {
    using folder = temporaryFolder();
    const { args } = crewConfig(folder.path, { backendUrl: backend.url, processes, ...options });
    spoil(folder.path);
    const { code, stderr } = await runToEnd(args, folder.path);
    return [code, ...stderr.trim().replaceAll(folder.path, 'FOLDER').split('\n')];
  };
  const taken = (listen: string) =>
    `The address ${listen} cannot be listened on (another process has it); free it or change gateway.listen in the config.`;

  test.each([false, true])('a taken port, though its holder shares it: %p', async (reusePort) => {
    const stranger = Bun.serve({ hostname: '127.0.0.1', port: 0, reusePort, fetch: () => new Response() });
    const listen = `127.0.0.1:${stranger.port}`;
    expect(await refuse({ listen })).toEqual([1, taken(listen)]);
    await stranger.stop(true);
  });

  test('M11 a port that a foreign process shares from a moment on in which they start', async () => {
    const port = freePort();
    let stranger: Bun.Server<undefined> | undefined;
    // The first process asks its backends before it listens.
    backend.probed(() => {
      stranger ??= Bun.serve({ hostname: '127.0.0.1', port, reusePort: true, fetch: () => new Response() });
      return undefined;
    });
    expect(await refuse({ listen: `127.0.0.1:${port}` })).toEqual([1, taken(`127.0.0.1:${port}`)]);
    await stranger?.stop(true);
  });

  test('an unknown config key, and every other problem with it', async () => {
    const gatewayLines = 'colour = "red"\n';
    expect(await refuse({ gatewayLines, extra: '[plans.pro]\nrps = 0\n' })).toEqual([
      1,
      expect.stringContaining('gateway.colour: unknown key (known keys: '),
      expect.stringContaining('plans.pro.rps: found 0, expected a number above 0'),
    ]);
  });

  test.each([ACCOUNTS_FILE, LEDGER_FILE])('a corrupt %s', async (file) => {
    const spoil = (folder: string) => writeFileSync(join(folder, file), 'this is no database '.repeat(200));
    expect(await refuse({}, spoil)).toEqual([
      1,
      `The database FOLDER/${file} is corrupt (file is not a database); put a backup in its place, or move it away to start empty.`,
    ]);
  });

  test('a certificate that is not there', async () => {
    expect(await refuse({ gatewayLines: 'tls = { cert = "none.pem", key = "none.pem" }\n' })).toEqual([
      1,
      expect.stringContaining('none.pem'),
    ]);
  });

  test('a data directory that has a gateway', async () => {
    const locked = (folder: string) => expect(takeLock(folder, 'gateway').kind).toBe('locked');
    expect(await refuse({}, locked)).toEqual([
      1,
      expect.stringMatching(/^gateway is already running on the data directory FOLDER( \(process \d+\))?\.$/),
    ]);
  });
});
