import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROGRAMS_PATH } from '../../deploys/api/programs.ts';
import type { ProgramsAnswer } from '../../deploys/api/schema.ts';
import { internetPolicy } from '../../deploys/delivery/policy.ts';
import { DEPLOYS_MIGRATIONS } from '../../deploys/schema.ts';
import { WEBHOOKS_MAX } from '../../deploys/webhooks/create.ts';
import { createSeal } from '../../deploys/webhooks/seal.ts';
import { createWebhooks } from '../../deploys/webhooks/webhooks.ts';
import { systemClock } from '../../shared/clock.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../shared/keys/schema.ts';
import { Secret } from '../../shared/secret.ts';
import { createNamespace, nthPublic } from '../../test/started/namespace.ts';
import { addKey, opened, random, temporaryFolder } from '../../test/started/gateway.ts';
import { ROOT, startProcess } from '../../test/started/process.ts';
import { hostOf, type SeenPost } from './webhook-receivers.ts';

/** `hanging` of the `webhooks` never answer, the others after `answerMs`. */
type Internet = Readonly<{
  webhooks: number;
  answerMs: number;
  hanging: number;
  pollSeconds: number;
}>;

const never = new AbortController().signal;
/** Keys that ask for programs; each may do so 60 times a minute. */
const ASKING_KEYS = 30;

/** What a script prints as JSON that runs in a network namespace of its own. */
export async function printedInside(path: string, args: readonly string[], signal: AbortSignal) {
  using namespace = createNamespace();
  const reason = namespace.reasonAgainst();
  if (reason !== undefined) throw new Error(`this bench needs a network namespace: ${reason}`);
  const command = namespace.inside(process.execPath, path, ...args);
  const child = Bun.spawn(command, { stdin: 'ignore', stdout: 'pipe', stderr: 'inherit', signal });
  return JSON.parse(await child.stdout.text());
}

/** A chain, receivers and a database with webhooks, in this network namespace; `start` starts the app among them. */
export async function startInternet({ webhooks, answerMs, hanging, pollSeconds }: Internet) {
  const folder = temporaryFolder();
  const at = (name: string) => join(folder.path, name);
  const run = (path: string, args: readonly string[], env = {}) =>
    startProcess([join(ROOT, path), ...args], folder.path, env);
  const receiverArgs = [at('ca.pem'), String(answerMs), String(hanging)];
  const receivers = await run('bench/self/webhook-receivers.ts', receiverArgs);
  const secret = new Secret(Buffer.from(random(32)).toString('base64'));
  const keys = await seed(at(ACCOUNTS_FILE), webhooks, secret);
  const storage = `[storage]\ndata_dir = "${folder.path}"\nsecret = "${secret.reveal()}"\n`;
  const localnet = '[localnet]\nlisten = "127.0.0.1:0"\nslot_ms = 50\nrooted_lag = 2\n';
  writeFileSync(at('chain.toml'), storage + localnet);
  const chain = await run('localnet/main.ts', ['--config', at('chain.toml')]);
  const deploys =
    `[deploys]\nlisten = "127.0.0.1:0"\nmetrics = "127.0.0.1:0"\n` +
    `rpc_urls = ["${chain.url.href}"]\npoll_seconds = ${pollSeconds}\n`;
  writeFileSync(at('deploys.toml'), storage + deploys);

  return {
    keys,
    chainUrl: chain.url,
    start: () =>
      run('deploys/main.ts', ['--config', at('deploys.toml')], { NODE_EXTRA_CA_CERTS: at('ca.pem') }),
    /** The app's database, on a connection of one's own. */
    store: () => opened(at(ACCOUNTS_FILE), {}),
    async posts(): Promise<SeenPost[]> {
      const response = await fetch(`https://${hostOf(0)}/`, {
        tls: { ca: readFileSync(at('ca.pem'), 'utf8') },
      });
      return (await response.json()) as SeenPost[]; // what webhook-receivers.ts gives
    },
    async [Symbol.asyncDispose]() {
      await chain[Symbol.asyncDispose]();
      await receivers[Symbol.asyncDispose]();
      folder[Symbol.dispose]();
    },
  };
}

/** Accounts with webhooks, and keys that ask for programs. */
async function seed(path: string, webhooks: number, secret: Secret): Promise<string[]> {
  const store = opened(path, { ...ACCOUNTS_MIGRATIONS, ...DEPLOYS_MIGRATIONS });
  const keys = Array.from({ length: ASKING_KEYS }, () => addKey(store, null));
  const { create } = createWebhooks({
    store,
    clock: systemClock,
    seal: createSeal([secret], random),
    policy: { ...internetPolicy([]), resolve: async () => [nthPublic(1)] },
    isWatched: () => true,
    enqueue: { ping: () => '' },
    wake: () => {},
    random,
  });
  for (let n = 0; n < webhooks; n++) {
    const accountId = 1 + Math.floor(n / WEBHOOKS_MAX);
    if (n % WEBHOOKS_MAX === 0 && accountId > keys.length) addKey(store, null);
    const by = { accountId, actor: { kind: 'command-line' } } as const;
    const created = await create(by, { url: `https://${hostOf(n)}/hook` }, never);
    if (created.kind !== 'created') throw new Error(created.kind);
  }
  store.close();
  return keys;
}

/** The programs as the app serves them; `undefined` before its first reading. */
export async function programsOf(base: URL, key: string): Promise<ProgramsAnswer | undefined> {
  const response = await fetch(new URL(PROGRAMS_PATH, base), { headers: { 'x-token': key } });
  const answer = (await response.json()) as ProgramsAnswer; // held to the schema in test/contract
  if (response.status === 503) return undefined;
  if (response.status !== 200) throw new Error(`${response.status}: ${JSON.stringify(answer)}`);
  return answer;
}

/** Programs that can be redeployed, as soon as the app has read them. */
export async function upgradeableOf(base: URL, keys: readonly string[]): Promise<string[]> {
  for (let i = 0; ; i++) {
    const answer = await programsOf(base, keys[i % keys.length] ?? '');
    const found = answer?.programs.filter(({ status }) => status === 'upgradeable') ?? [];
    if (found.length > 0) return found.map(({ program_id }) => program_id);
    await systemClock.sleep(100, never);
  }
}
