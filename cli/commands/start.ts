import { consoleComplaint } from '../../deploys/auth/provider.ts';
import { consoleUrlOf, inviteFirstOperator, showLink } from '../../deploys/auth/sign-up.ts';
import { firstOperatorLink, paths } from '../../deploys/console/paths.ts';
import { requestReload } from '../../shared/keys/reload.ts';
import type { Config } from '../../shared/config/config.ts';
import { loadConfig } from '../../shared/config/load.ts';
import { retireDemoKeys } from '../../shared/keys/demo.ts';
import { withBooksOf } from '../books.ts';
import { type Command, failed, type Invocation, type Outcome } from '../command.ts';
import { watchRunners } from '../start/ancestors.ts';
import type { AppName } from '../start/app.ts';
import { bannerOf, type LoginShown, recordOf, type Running } from '../start/banner.ts';
import { demoKey } from '../start/demo.ts';
import { runEverything } from '../start/everything.ts';
import { createStopWishes } from '../start/stop-wishes.ts';

export const start: Command = {
  words: 'start',
  operands: [],
  options: ['config', 'json'],
  summary: 'Run everything: gateway, deploys and, without backends in the config, a chain of its own.',
  act: (invocation) => {
    const loaded = loadConfig(invocation.values.config, invocation.world.env);
    if (loaded.kind === 'unusable') return failed(...loaded.lines);
    return run(loaded.config, invocation);
  },
};

const DEMO_TAKEN =
  'The account demo was made by somebody else. Rename it: bun run sluice account rename demo NAME';

/**
 * How long an app may take to end. The gateway has 5 s when its listener has drained, in which its supervisor kills what does
 * not end; deploys finishes the attempts of deliveries (10.5 s) and then its answers (5 s), whatever the gateway's drain is.
 */
export function endMsOf(drainMs: number): number {
  return Math.max(30_000, drainMs + 5_000);
}

async function run(config: Config, invocation: Invocation): Promise<Outcome> {
  const { world, values, json } = invocation;
  const embedded = config.backends.length === 0;
  let key: string | undefined;
  let invitation: string | undefined;
  const books = withBooksOf(
    config,
    world,
    (open) => {
      if (embedded) {
        const demo = demoKey(open);
        if (demo.kind === 'name-taken') return failed(DEMO_TAKEN);
        key = demo.key;
      } else if (retireDemoKeys(open.store, world.clock.now()) > 0)
        world.err('The demo key of the embedded chain is revoked: backends are configured.\n');
      invitation = inviteFirstOperator({ ...world, store: open.store });
      return { kind: 'done', objects: [], text: '' };
    },
    'make',
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
  world.err(`Starting ${stages.flat().join(', ')} ...\n`);
  const args = values.config === undefined ? [] : ['--config', values.config];
  const code = await runEverything(
    { stages, root, args, env, endMs, dataDir },
    {
      clock,
      wishes,
      ready: (urls) => world.out(announced(config, urls, key, invitation, json)),
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

/** The apps read the config again by themselves once the database asks for it; a bad config is told and changes nothing. */
function reload({ values, world }: Invocation) {
  const loaded = loadConfig(values.config, world.env);
  if (loaded.kind === 'unusable') return world.err(loaded.lines.map((line) => `${line}\n`).join(''));
  withBooksOf(
    loaded.config,
    world,
    ({ store }) => {
      requestReload(store);
      return { kind: 'ended', code: 0 };
    },
    'refuse',
  );
}
