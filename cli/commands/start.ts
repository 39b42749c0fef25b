import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { consoleComplaint } from '../../deploys/auth/provider.ts';
import { consoleUrlOf, inviteFirstOperator, type ShownLink, showLink } from '../../deploys/auth/sign-up.ts';
import { firstOperatorLink, paths } from '../../deploys/console/paths.ts';
import { unreachable } from '../../shared/brand.ts';
import type { Config } from '../../shared/config/config.ts';
import { loadConfig } from '../../shared/config/load.ts';
import { hashOf, keyIdOf, readApiKey } from '../../shared/keys/api-key.ts';
import { DEMO, requestReload, retireDemoKeys } from '../../shared/keys/schema.ts';
import { tighten } from '../../shared/store/private.ts';
import { type Books, COMMAND_LINE, withBooksOf } from '../frame/books.ts';
import { command, failed, type Invocation, type Outcome } from '../frame/command.ts';
import type { AppName } from '../start/app.ts';
import { createStopWishes, runEverything, watchRunners } from '../start/everything.ts';

export const start = command(
  'start',
  'Run the gateway, deploys and, if the config has no backends, an embedded chain.',
  (invocation) => {
    const loaded = loadConfig(invocation.values.config, invocation.world.env);
    return loaded.kind === 'unusable' ? failed(...loaded.lines) : run(loaded.config, invocation);
  },
);

const DEMO_TAKEN =
  'The account name demo is in use. Rename that account: bun run sluice account rename demo NAME';

/**
 * How long an app may take to end. The gateway has 5 s when its listener has drained, in which its supervisor kills what does
 * not end; deploys finishes the attempts of deliveries (10.5 s) and then its answers (5 s), whatever the gateway's drain is.
 */
export function endMsOf(drainMs: number): number {
  return Math.max(30_000, drainMs + 5_000);
}

async function run(config: Config, invocation: Invocation): Promise<Outcome> {
  const { world, values, flags } = invocation;
  const embedded = config.backends.length === 0;
  let key: string | undefined;
  let invitation: string | undefined;
  const books = await withBooksOf(
    config,
    world,
    (open) => {
      if (embedded) {
        const demo = demoKey(open);
        if (demo.kind === 'name-taken') return failed(DEMO_TAKEN);
        key = demo.key;
      } else if (retireDemoKeys(open.store, world.clock.now()) > 0)
        world.err('The demo key of the embedded chain has been revoked, because backends are configured.\n');
      invitation = inviteFirstOperator({ ...world, store: open.store });
      return { kind: 'done', objects: [], text: '' };
    },
    'create',
  );
  if (books.kind === 'failed') return books;

  const stages: readonly AppName[][] = [...(embedded ? [['localnet' as const]] : []), ['gateway', 'deploys']];
  const { dataDir } = config.storage;
  const endMs = endMsOf(config.gateway.drainMs);
  const { clock, root, env } = world;
  const wishes = createStopWishes(clock);
  const over = new AbortController();
  onSignals(wishes.note, () => reload(invocation));
  void watchRunners({ pid: process.pid, env, clock }, over.signal, wishes.note);
  world.err(`Starting ${stages.flat().join(', ')}...\n`);
  const args = values.config === undefined ? [] : ['--config', values.config];
  const code = await runEverything(
    { stages, root, args, env, endMs, dataDir },
    {
      clock,
      wishes,
      ready: (urls) => world.out(announced(config, urls, key, invitation, flags.has('json'))),
      err: world.err,
    },
  );
  over.abort();
  return { kind: 'ended', code };
}

function announced(
  { deploys, storage }: Config,
  urls: ReadonlyMap<AppName, string>,
  key: string | undefined,
  invitation: string | undefined,
  json: boolean,
): string {
  const consoleUrl = urls.get('deploys') ?? '';
  const running: Running = {
    gatewayUrl: urls.get('gateway') ?? '',
    consoleUrl,
    demoKey: key,
    login: loginOf(deploys.publicUrl, consoleUrl, storage.dataDir, invitation),
    dataDir: storage.dataDir,
  };
  return json ? `${JSON.stringify(recordOf(running))}\n` : bannerOf(running);
}

/** `invitation` is the token of a new link for the first operator. */
function loginOf(
  publicUrl: URL,
  listenUrl: string,
  dataDir: string,
  invitation: string | undefined,
): LoginShown {
  const sentence = consoleComplaint(publicUrl);
  if (sentence !== undefined) return { kind: 'off', sentence };
  const url = consoleUrlOf(publicUrl, new URL(listenUrl));
  if (invitation !== undefined) {
    const link = firstOperatorLink(url, invitation);
    return { kind: 'first-operator', link: showLink(link, dataDir, process.stdout.isTTY) };
  }
  return { kind: 'login', url: new URL(paths.login, url).href };
}

/** A hang-up is the terminal's end; without a terminal it is the customary wish for a reload. */
function onSignals(stop: () => void, hup: () => void) {
  process.on('SIGINT', stop);
  process.on('SIGTERM', stop);
  process.on('SIGHUP', process.stdout.isTTY ? stop : hup);
}

/** The apps read the config again by themselves once the database asks for it; a bad config is reported and changes nothing. */
function reload({ values, world }: Invocation) {
  const loaded = loadConfig(values.config, world.env);
  if (loaded.kind === 'unusable') return world.err(loaded.lines.map((line) => `${line}\n`).join(''));
  void withBooksOf(
    loaded.config,
    world,
    ({ store }) => {
      requestReload(store);
      return { kind: 'ended', code: 0 };
    },
    'refuse',
  );
}

/** A demonstration that is refused after five calls a second would show nothing but refusals. */
const DEMO_PLAN = 'pro';
/** The one key that is kept in the clear, readable by the owner alone. */
const DEMO_KEY_FILE = 'demo-key';

/** `name-taken`: the account of the demo's name is another's. */
type Demo = { readonly kind: 'key'; readonly key: string } | { readonly kind: 'name-taken' };

/** The demo account's key: the one of the last start while it is good, else a new one. */
export function demoKey({ config, accounts, keys }: Pick<Books, 'config' | 'accounts' | 'keys'>): Demo {
  const file = join(config.storage.dataDir, DEMO_KEY_FILE);
  tighten(file);
  const kept = existsSync(file) ? readApiKey(readFileSync(file, 'utf8').trim()) : undefined;
  if (kept !== undefined) {
    const row = keys.find(keyIdOf(hashOf(kept)));
    if (row?.state === 'active' && row.account === DEMO) return { kind: 'key', key: kept };
  }
  if (accounts.own(DEMO, DEMO_PLAN, COMMAND_LINE).kind === 'name-taken') return { kind: 'name-taken' };
  const created = keys.create(DEMO, DEMO, COMMAND_LINE);
  if (created.kind !== 'created') throw new Error(`the demo key could not be created: ${created.kind}`);
  writeFileSync(file, `${created.made.key}\n`, { mode: 0o600 });
  return { kind: 'key', key: created.made.key };
}

/** What `start` tells its user. `demoKey` is absent when the backends are the operator's own. */
type Running = Readonly<{
  gatewayUrl: string;
  consoleUrl: string;
  demoKey: string | undefined;
  login: LoginShown;
  dataDir: string;
}>;

/** How one gets into the console. */
type LoginShown =
  | { readonly kind: 'login'; readonly url: string }
  /** There is no operator yet: the link creates one, once, within 24 hours. */
  | { readonly kind: 'first-operator'; readonly link: ShownLink }
  /** `sentence` says what to do so that there is one. */
  | { readonly kind: 'off'; readonly sentence: string };

const GET_SLOT = '{"jsonrpc":"2.0","id":1,"method":"getSlot"}';

/** The first screen: addresses, the demo key, and lines that work when they are pasted. */
export function bannerOf({ gatewayUrl, consoleUrl, demoKey, login, dataDir }: Running): string {
  const gateway = reachable(gatewayUrl);
  const console = reachable(consoleUrl);
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
          getSlotLine(gateway, demoKey),
          programsLine(console, demoKey),
        ];
  return [
    '',
    `  Gateway        ${gateway}`,
    `  Console        ${console}  (program API and OpenAPI)`,
    ...loginLines(login),
    ...how,
    '',
    `  Logs are in ${dataDir}; Ctrl-C stops everything.`,
    '',
    '',
  ].join('\n');
}

/** The same as one object, for `--json`. */
export function recordOf({ gatewayUrl, consoleUrl, demoKey, login }: Running): object {
  const urls = { gateway: reachable(gatewayUrl), console: reachable(consoleUrl), ...loginRecord(login) };
  if (demoKey === undefined) return urls;
  const lines = [getSlotLine(urls.gateway, demoKey), programsLine(urls.console, demoKey)];
  return { ...urls, demo_key: demoKey, try: lines };
}

function loginLines(login: LoginShown): string[] {
  switch (login.kind) {
    case 'login':
      return [`  Login          ${login.url}`];
    case 'first-operator':
      return [
        `  Login          ${login.link.kind === 'file' ? 'the link in this file' : 'this link'} creates the first operator, once, within 24 hours:`,
        '',
        login.link.kind === 'file' ? login.link.path : login.link.url,
        '',
      ];
    case 'off':
      return [`  Login          ${login.sentence}`];
    default:
      return unreachable(login);
  }
}

function loginRecord(login: LoginShown): object {
  if (login.kind === 'off') return {};
  if (login.kind === 'login') return { login: login.url };
  const { link } = login;
  return link.kind === 'file' ? { first_operator_file: link.path } : { first_operator: link.url };
}

function getSlotLine(gateway: string, key: string): string {
  return `curl -s '${gateway}?api-key=${key}' -H 'content-type: application/json' -d '${GET_SLOT}'`;
}

function programsLine(console: string, key: string): string {
  return `curl -s '${console}api/v1/program-deploys/programs?api-key=${key}'`;
}

/** An address that a client on this machine can use; a listener on every address is reached at the loopback one. */
function reachable(text: string): string {
  const url = new URL(text);
  if (url.hostname === '0.0.0.0') url.hostname = '127.0.0.1';
  if (url.hostname === '[::]') url.hostname = '[::1]';
  return url.href;
}
