import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { consoleComplaint } from '../../deploys/auth/provider.ts';
import { consoleUrlOf, inviteFirstOperator, showLink } from '../../deploys/auth/sign-up.ts';
import { firstOperatorLink, paths } from '../../deploys/console/paths.ts';
import { type Config, gatewayUrl } from '../../shared/config/config.ts';
import { loadConfig } from '../../shared/config/load.ts';
import { hashOf, keyIdOf, readApiKey } from '../../shared/keys/api-key.ts';
import { DEMO, requestReload, retireDemoKeys } from '../../shared/keys/schema.ts';
import { ACCOUNT_FILES } from '../../shared/process.ts';
import { START, takeLocks } from '../../shared/store/lock.ts';
import { tighten } from '../../shared/store/private.ts';
import { type Books, COMMAND_LINE, onConfig, withBooks } from '../frame/books.ts';
import { failed, type Invocation, type Outcome } from '../frame/command.ts';
import { type AppName, runEverything } from '../start/apps.ts';
import { createStopWishes, watchRunners } from '../start/stops.ts';

export const start = onConfig(
  'start --account...',
  'Run the gateway, deploys and, if the config has no backends, an embedded chain.',
  run,
);

const DEMO_TAKEN =
  'The account name demo is in use. Rename that account: bun run sluice account rename demo NAME';

/**
 * How long an app may take to end. The gateway has 5 s when its listener has drained, in which its supervisor kills what does
 * not end; deploys finishes the attempts of deliveries (10.5 s) and then its answers (5 s), whatever the gateway's drain is.
 */
function endMsOf(drainMs: number): number {
  return Math.max(30_000, drainMs + 5_000);
}

const NO_CHAIN =
  'start --account loads accounts into the embedded chain, which does not run: the config has backends.';

async function run(config: Config, invocation: Invocation): Promise<Outcome> {
  const { world, options, pairs } = invocation;
  const { clock, root, err } = world;
  const { dataDir } = config.storage;
  const embedded = config.backends.length === 0;
  if (!embedded && pairs.length > 0) return failed(NO_CHAIN);
  if (embedded) {
    const { readAccountFiles } = await import('../../localnet/genesis/account-files.ts');
    const files = readAccountFiles({ dir: config.localnet.accountsDir, named: pairs });
    if (files.kind === 'problems') return failed(...files.lines);
  }
  const stages: readonly AppName[][] = [...(embedded ? [['localnet' as const]] : []), ['gateway', 'deploys']];
  // Before anything is opened: a link for the first operator ends the one that was given before.
  const locking = takeLocks(dataDir, [START, ...stages.flat()]);
  if (locking.kind === 'refused')
    return failed(`${locking.sentence}${locking.isHeld ? besideAnother(config) : ''}`);
  const [own, ...ofApps] = locking.locks;
  for (const { release } of ofApps) release();
  const env = { ...world.env, [ACCOUNT_FILES]: JSON.stringify(pairs) };
  const prepare = (books: Books) => {
    const demoKey = embedded ? demoKeyOf(books) : undefined;
    if (embedded && demoKey === undefined) return failed(DEMO_TAKEN);
    if (!embedded && retireDemoKeys(books.store, clock.now()) > 0)
      err('The demo key of the embedded chain has been revoked, because backends are configured.\n');
    return {
      kind: 'prepared',
      demoKey,
      invitation: inviteFirstOperator({ ...world, store: books.store }),
    } as const;
  };
  const prepared = await withBooks(config, world, prepare, 'create');
  if (prepared.kind === 'failed') return prepared;
  const { demoKey, invitation } = prepared;

  const ready = (urls: ReadonlyMap<AppName, string>) => {
    const consoleUrl = urls.get('deploys') ?? '';
    const login = loginOf(config, consoleUrl, invitation, process.stdout.isTTY);
    const { text, record } = firstScreen({
      gatewayUrl: urls.get('gateway') ?? '',
      consoleUrl,
      demoKey,
      login,
      dataDir,
    });
    world.out(options.json === undefined ? text : `${JSON.stringify(record)}\n`);
  };
  const args = options.config === undefined ? [] : ['--config', options.config];
  const wishes = createStopWishes(clock);
  const over = new AbortController();
  onSignals(wishes.note, () => reload(invocation));
  void watchRunners({ pid: process.pid, env, clock }, over.signal, wishes.note);
  err(`Starting ${stages.flat().join(', ')}...\n`);
  const endMs = endMsOf(config.gateway.drainMs);
  const code = await runEverything({ stages, root, args, env, endMs, dataDir, clock, wishes, ready, err });
  over.abort();
  own?.release();
  return { kind: 'ended', code };
}

const besideAnother = ({ gateway }: Config) =>
  ` That one goes on; nothing was started. By this config, the gateway is at ${gatewayUrl(gateway).href}.`;

/** A hang-up is the terminal's end; without a terminal it is the customary wish for a reload. */
function onSignals(stop: () => void, hup: () => void) {
  process.on('SIGINT', stop);
  process.on('SIGTERM', stop);
  process.on('SIGHUP', process.stdout.isTTY ? stop : hup);
}

/** The apps read the config again by themselves once the database asks for it; a bad config is reported and changes nothing. */
function reload({ options, world }: Invocation) {
  const loaded = loadConfig(options.config, world.env);
  if (loaded.kind === 'unusable') return world.err(loaded.lines.map((line) => `${line}\n`).join(''));
  void withBooks(loaded.config, world, ({ store }) => void requestReload(store));
}

/** A demonstration that is refused after five calls a second would show nothing but refusals. */
const DEMO_PLAN = 'pro';
/** The one key that is kept in the clear, readable by the owner alone. */
const DEMO_KEY_FILE = 'demo-key';

/** The demo account's key: the last start's while it is good, else a new one. `undefined`: the account of that name is not ours. */
export function demoKeyOf({ config, accounts, keys }: Books): string | undefined {
  const file = join(config.storage.dataDir, DEMO_KEY_FILE);
  tighten(file);
  const kept = existsSync(file) ? readApiKey(readFileSync(file, 'utf8').trim()) : undefined;
  const row = kept === undefined ? undefined : keys.find(keyIdOf(hashOf(kept)));
  if (row?.state === 'active' && row.account === DEMO) return kept;
  if (accounts.own(DEMO, DEMO_PLAN, COMMAND_LINE).kind === 'name-taken') return undefined;
  const created = keys.create(DEMO, DEMO, COMMAND_LINE);
  if (created.kind !== 'created') throw new Error(`the demo key could not be created: ${created.kind}`);
  writeFileSync(file, `${created.made.key}\n`, { mode: 0o600 });
  return created.made.key;
}

/** How one gets into the console: the lines of the first screen, and the members with `--json`. */
type Login = Readonly<{ lines: readonly string[]; record: object }>;

/** `invitation` is the token of a new link for the first operator, who is created by it, once, within 24 hours. */
export function loginOf(
  { deploys: { publicUrl }, storage: { dataDir } }: Pick<Config, 'deploys' | 'storage'>,
  listenUrl: string,
  invitation: string | undefined,
  isTerminal: boolean,
): Login {
  const sentence = consoleComplaint(publicUrl);
  if (sentence !== undefined) return { lines: [sentence], record: {} };
  const url = consoleUrlOf(publicUrl, new URL(listenUrl));
  if (invitation === undefined) {
    const { href } = new URL(paths.login, url);
    return { lines: [href], record: { login: href } };
  }
  const link = showLink(firstOperatorLink(url, invitation), dataDir, isTerminal);
  const [where, shown, record] =
    link.kind === 'file'
      ? ['the link in this file', link.path, { first_operator_file: link.path }]
      : ['this link', link.url, { first_operator: link.url }];
  return { lines: [`${where} creates the first operator, once, within 24 hours:`, '', shown, ''], record };
}

/** The lines that `start` shows. `demoKey` is absent when the backends are the operator's own. */
type Running = Readonly<{
  gatewayUrl: string;
  consoleUrl: string;
  demoKey: string | undefined;
  login: Login;
  dataDir: string;
}>;

const GET_SLOT = '{"jsonrpc":"2.0","id":1,"method":"getSlot"}';

/** Addresses, the demo key, and lines that work when they are pasted; and the same as one object, for `--json`. */
export function firstScreen({ gatewayUrl, consoleUrl, demoKey, login, dataDir }: Running) {
  const gateway = reachable(gatewayUrl);
  const console = reachable(consoleUrl);
  const lines = [
    `curl -s '${gateway}?api-key=${demoKey}' -H 'content-type: application/json' -d '${GET_SLOT}'`,
    `curl -s '${console}api/v1/program-deploys/programs?api-key=${demoKey}'`,
  ];
  const how =
    demoKey === undefined
      ? [
          '  Create a key   bun run sluice account create NAME --plan trial',
          '                 bun run sluice key create NAME',
        ]
      : [
          `  Demo key       ${demoKey}`,
          '',
          '  Try            one call, and the latest deploys of the watched programs:',
          '',
          ...lines,
        ];
  const [first = '', ...more] = login.lines;
  const text = `
  Gateway        ${gateway}
  Console        ${console}  (program API and OpenAPI)
${[`  Login          ${first}`, ...more, ...how].join('\n')}

  Logs are in ${dataDir}; Ctrl-C stops everything.

`;
  const demo = demoKey === undefined ? {} : { demo_key: demoKey, try: lines };
  return { text, record: { gateway, console, ...login.record, ...demo } };
}

/** An address that a client on this machine can use; a listener on every address is reached at the loopback one. */
function reachable(text: string): string {
  const url = new URL(text);
  if (url.hostname === '0.0.0.0') url.hostname = '127.0.0.1';
  if (url.hostname === '[::]') url.hostname = '[::1]';
  return url.href;
}
