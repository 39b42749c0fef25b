import { PROGRAMS_PATH } from '../../deploys/api/programs.ts';
import { composeDeploys, type DeploysInputs } from '../../deploys/compose.ts';
import { DEPLOYS_MIGRATIONS } from '../../deploys/schema.ts';
import type { WatchedProgram } from '../../shared/watched.ts';
import { ACCOUNTS_MIGRATIONS } from '../../shared/keys/schema.ts';
import { USAGE_MIGRATIONS } from '../../shared/ledger/schema.ts';
import { Secret } from '../../shared/secret.ts';
import type { Store } from '../../shared/store/open.ts';
import { createVirtualClock } from '../fakes/chain-clock.ts';
import { addressOf, startChain } from '../fakes/chain.ts';
import { answered, createScriptedSend } from '../fakes/scripted-send.ts';
import { addKey, opened, silentLog } from '../started/gateway.ts';
import { scriptedPolicy, testSeal } from './webhooks/started.ts';

export const WATCHER_KEY = 'sluice_watcher_key_that_must_not_leak';
export const AUTHORITY = addressOf('authority');
export const watchedOf = (...labels: string[]): WatchedProgram[] =>
  labels.map((label) => ({ address: addressOf(label), label }));

/** Waits for what another part is about to do; a test that waits in vain ends by its own timeout. */
export async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve));
}

type Chain = ReturnType<typeof startChain>;

/**
 * The whole app without its own sockets, over a scripted chain, a store in memory and a clock that stands still.
 * It does not watch until `watch` is called, which resolves after the first good reading.
 */
export function startDeploys(
  programs: readonly WatchedProgram[],
  chains: readonly [Chain, ...Chain[]] = [startChain()],
  path = ':memory:',
  scripted = createScriptedSend(() => answered(200)),
  deliveryOf: (store: Store) => Partial<DeploysInputs['delivery']> = () => ({}),
) {
  const clock = createVirtualClock();
  const store = opened(path, { ...ACCOUNTS_MIGRATIONS, ...DEPLOYS_MIGRATIONS });
  const lines: unknown[] = [];
  const over = new AbortController();
  let running: Promise<void> | undefined;
  const config = {
    publicUrl: new URL('https://console.example.com'),
    rpcUrls: chains.map(({ url }) => url),
    rpcKey: new Secret(WATCHER_KEY),
    pollMs: 60_000,
  };
  const ledgerPath = path === ':memory:' ? path : `${path}.usage`;
  const ledger = opened(ledgerPath, USAGE_MIGRATIONS);
  const ledgerReader = opened(ledgerPath, USAGE_MIGRATIONS);
  const log = silentLog(lines);
  const delivery = {
    send: scripted.send,
    secretsOf: () => ({ current: new Secret('whsec_of_the_tests'), next: undefined }),
    seal: testSeal,
    policy: scriptedPolicy().policy,
    ...deliveryOf(store),
  };
  const random = (bytes: number) => crypto.getRandomValues(new Uint8Array(bytes));
  const app = composeDeploys({
    config,
    programs,
    store,
    ledger,
    ledgerReader,
    clock,
    fetch,
    log,
    random,
    delivery,
  });
  const key = addKey(store, null);

  /** Asks for the programs, with a good key unless told otherwise. */
  function get(query = '', headers: Record<string, string> = { 'x-token': key }): Promise<Response> {
    return Promise.resolve(app.answer(new Request(`http://localhost${PROGRAMS_PATH}${query}`, { headers })));
  }
  async function isWell(): Promise<boolean> {
    return (await app.answer(new Request('http://localhost/health'))).status === 200;
  }
  async function watch(): Promise<void> {
    running ??= app.maintain(over.signal);
    while (!(await isWell())) await new Promise((resolve) => setImmediate(resolve));
  }
  const count = (sql: string) => store.query<{ n: number }, []>(sql).get()?.n ?? 0;

  /** The figures of the metrics by their names. */
  async function figures(): Promise<Record<string, number>> {
    const response = await app.answerMetrics(new Request('http://localhost/metrics'));
    const rows = (await response.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    return Object.fromEntries(
      rows.map((row) => row.split(/ (?=[^ ]+$)/)).map(([name, n]) => [name, Number(n)]),
    );
  }

  /** Lets a minute pass and waits until the reading that starts then is taken. */
  async function readAgain(): Promise<void> {
    await clock.advance(config.pollMs);
    await until(() => count('SELECT checked_at_ms AS n FROM reading') === clock.now());
  }

  return {
    ...app,
    chain: chains[0],
    clock,
    store,
    lines,
    posts: scripted.posts,
    key,
    get,
    watch,
    readAgain,
    figures,
    /** Waits until `wanted` block times are known. */
    blockTimes: (wanted: number) => until(() => count('SELECT count(*) AS n FROM block_times') === wanted),
    addKey: (plan: string | null = null) => addKey(store, plan),
    async [Symbol.asyncDispose]() {
      over.abort();
      await running;
      for (const each of [store, ledger, ledgerReader]) each.close();
      for (const chain of chains) await chain[Symbol.asyncDispose]();
    },
  };
}

/** The records of an answer that must be a good one. */
export async function programsOf(response: Response): Promise<Record<string, unknown>[]> {
  if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`);
  const body = (await response.json()) as { programs: Record<string, unknown>[] }; // checked by the schema test
  return body.programs;
}

/** Status and parsed body of a refusal. */
export async function refusalOf(response: Response): Promise<[number, unknown]> {
  return [response.status, await response.json()];
}
