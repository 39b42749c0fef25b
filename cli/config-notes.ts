import { createReadRedis } from '../deploys/health/neighbours.ts';
import { readWatched } from '../deploys/watch/watched.ts';
import { METHODS } from '../gateway/methods/table.ts';
import type { Clock } from '../shared/clock.ts';
import type { BackendConfig } from '../shared/config/backends.ts';
import type { Config } from '../shared/config/config.ts';
import type { Lane } from '../shared/config/profiles.ts';
import { unreadableTls } from '../shared/config/tls.ts';

/** What is wrong with the files that a valid config names, a sentence each. */
export function fileProblems({ gateway, deploys }: Config): readonly string[] {
  const tls = unreadableTls(gateway.tls);
  const watched = readWatched(deploys.programsPath);
  return [...(tls === undefined ? [] : [tls]), ...(watched.kind === 'problems' ? watched.lines : [])];
}

/** Lanes that every service offers; the asset standard is an extra. */
const USUAL_LANES: readonly Lane[] = ['state', 'scan', 'archive', 'send'];

/** What the operator may not expect of a config that is valid. */
export function notesOn({ storage, backends }: Config): readonly string[] {
  const notes: string[] = [];
  if (storage.redisUrl !== undefined)
    notes.push(
      'with storage.redis, accounts, plans and prices are those of the host on which deploys runs; run one deploys only.',
    );
  if (backends.length > 0) notes.push(...notesOnBackends(backends));
  return notes;
}

/** What keeps this host from using the Redis of the config, a sentence for each of its nodes. */
export async function notesOnRedis({ storage }: Config, clock: Clock): Promise<readonly string[]> {
  if (storage.redisUrl === undefined) return [];
  const seen = await createReadRedis(storage.redisUrl, clock)();
  return seen.flatMap((node) =>
    node.kind === 'answers' ? [] : [`Redis ${node.host} cannot be used from here (${node.reason}).`],
  );
}

function notesOnBackends(backends: readonly BackendConfig[]): readonly string[] {
  const unserved = USUAL_LANES.filter((lane) => !backends.some(({ lanes }) => lanes.includes(lane)));
  const lanes =
    unserved.length === 0
      ? []
      : [`no backend has the lanes ${unserved.join(', ')}; their methods are answered -32601.`];
  return [...lanes, ...backends.flatMap(notesOnBackend)];
}

function notesOnBackend({ name, methods, headers }: BackendConfig): readonly string[] {
  const unknown = methods.filter((method) => !METHODS.has(method));
  const literal = [...headers].filter(([, value]) => /.env:[A-Z]/.test(value.reveal())).map(([key]) => key);
  return [
    ...unknown.map(
      (method) =>
        `backend ${name} declares ${method}, which Sluice does not know by that name: it is ` +
        (method.startsWith('send')
          ? 'sent once, as a transaction is.'
          : 'taken for a read, and repeated at another backend when one fails.'),
    ),
    ...literal.map(
      (key) => `header ${key} of backend ${name} is sent as it stands: "env:NAME" must be the whole value.`,
    ),
  ];
}
