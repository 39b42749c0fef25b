import { resolve } from 'node:path';
import { createReadRedis } from '../../deploys/health/neighbours.ts';
import { readWatched } from '../../shared/watched.ts';
import { METHODS } from '../../shared/config/methods.ts';
import type { BackendConfig } from '../../shared/config/backends.ts';
import type { Config } from '../../shared/config/config.ts';
import {
  blankComplaint,
  type ConfigText,
  loadConfig,
  readConfig,
  unreadableTls,
} from '../../shared/config/load.ts';
import { LANES_BY_DEFAULT } from '../../shared/config/profiles.ts';
import { lostPlans } from '../../shared/config/reload.ts';
import type { Clock } from '../../shared/clock.ts';
import { plansInUse, requestReload } from '../../shared/keys/schema.ts';
import { onConfig, withBooks } from '../frame/books.ts';
import { type Command, command, done, failed } from '../frame/command.ts';

const LOST_PLAN = 'Apps that still have it reload nothing; after a restart they reject its keys with 401.';

export const configCommands: readonly Command[] = [
  command(
    'config check [FILE]',
    'Validate a config file and print a summary.',
    async ({ operands: [file], options, world }) => {
      if (file !== undefined && options.config !== undefined)
        return failed('config check takes either FILE or --config FILE, not both.');
      const loaded = loadConfig(file ?? options.config, world.env);
      const problems = loaded.kind === 'unusable' ? loaded.lines : await fileProblems(loaded.config);
      if (loaded.kind === 'unusable' || problems.length > 0)
        return { kind: 'failed', lines: problems, objects: [{ ok: false, problems }] };
      const { config, read } = loaded;
      const notes = [...notesOn(config), ...(await notesOnRedis(config, world.clock))];
      const lines = [`OK: ${sourceOf(read)}: ${summaryOf(config)}.`, ...notes.map((note) => `Note: ${note}`)];
      return done(lines.join('\n'), { ok: true, source: read.name, notes });
    },
  ),
  onConfig(
    'config reload',
    'Validate the config and make running apps reload plans and credits.',
    (config, { options, world }) => {
      const reading = readConfig(options.config);
      const blank = reading.kind === 'read' ? blankComplaint(reading.read) : undefined;
      if (blank !== undefined) return failed(blank);
      return withBooks(config, world, ({ store }) => {
        const revision = requestReload(store);
        const used = plansInUse(store);
        const gone = [...used.keys()].filter((plan) => !config.plans.has(plan));
        const lines = [
          'The config is valid. Running apps reload its plans and credits within a second.',
          ...lostPlans(gone, used).map((lost) => `Note: ${lost} ${LOST_PLAN}`),
        ];
        return done(lines.join('\n'), { config_revision: revision });
      });
    },
    'is-absent',
  ),
];

const sourceOf = ({ name, text }: ConfigText) =>
  text === undefined ? `${name} (no sluice.toml in ${resolve('.')})` : name;

function summaryOf({ backends, plans, prices, gateway, deploys, storage }: Config): string {
  const names = backends.map(({ name }) => name).join(', ');
  return [
    backends.length === 0 ? 'the embedded chain as the backend' : `backends ${names}`,
    `plans ${[...plans.keys()].join(', ')}`,
    `${prices.methods.size} methods with custom prices (default ${prices.default})`,
    `gateway on ${shown(gateway.listen)}`,
    `deploys on ${shown(deploys.listen)}`,
    `data in ${resolve(storage.dataDir)}`,
  ].join('; ');
}

function shown({ hostname, port }: Config['gateway']['listen']): string {
  return `${hostname.includes(':') ? `[${hostname}]` : hostname}:${port}`;
}

/** Checks the files that a valid config names; gives a sentence for each problem. */
async function fileProblems({ gateway, deploys, localnet, backends }: Config): Promise<readonly string[]> {
  const tls = unreadableTls(gateway.tls);
  const watched = readWatched(deploys.programsPath);
  const dir = backends.length === 0 ? localnet.accountsDir : undefined;
  return [
    ...(tls === undefined ? [] : [tls]),
    ...(watched.kind === 'problems' ? watched.lines : []),
    ...(dir === undefined ? [] : await accountProblems(dir)),
  ];
}

/** Checks the accounts that the embedded chain is to load. Its packages are no part of a production install. */
async function accountProblems(dir: string): Promise<readonly string[]> {
  const { readAccountFiles } = await import('../../localnet/genesis/account-files.ts');
  const read = readAccountFiles({ dir, named: [] });
  return read.kind === 'problems' ? read.lines : [];
}

/** Tells the operator of surprises in a valid config, a sentence each. */
function notesOn({ storage, backends }: Config): readonly string[] {
  const redis =
    'with storage.redis, accounts, plans and prices come from the host that runs deploys; run deploys on one host only.';
  const unserved = LANES_BY_DEFAULT.filter((lane) => !backends.some(({ lanes }) => lanes.includes(lane)));
  return [
    ...(storage.redisUrl === undefined ? [] : [redis]),
    ...(backends.length === 0 || unserved.length === 0
      ? []
      : [`no backend serves the lanes ${unserved.join(', ')}; their methods return error -32601.`]),
    ...backends.flatMap(notesOnBackend),
  ];
}

/** Tries the Redis of the config; gives a sentence for each node that this host cannot use. */
async function notesOnRedis({ storage }: Config, clock: Clock): Promise<readonly string[]> {
  if (storage.redisUrl === undefined) return [];
  const seen = await createReadRedis(storage.redisUrl, clock)();
  return seen.flatMap((node) =>
    node.kind === 'answers' ? [] : [`Redis ${node.host} can't be used from this host (${node.reason}).`],
  );
}

function notesOnBackend({ name, methods, headers }: BackendConfig): readonly string[] {
  const unknown = methods.filter((method) => !METHODS.has(method));
  const literal = [...headers].filter(([, value]) => /.env:[A-Z]/.test(value.reveal())).map(([key]) => key);
  return [
    ...unknown.map(
      (method) =>
        `backend ${name} declares ${method}, which Sluice doesn't know: it is ` +
        (method.startsWith('send')
          ? 'sent only once, like a transaction.'
          : 'treated as a read and retried on another backend if one fails.'),
    ),
    ...literal.map(
      (key) => `header ${key} of backend ${name} is sent literally: "env:NAME" must be the whole value.`,
    ),
  ];
}
