import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  KEY_PLACEHOLDER,
  programsSnippet,
  rpcSnippets,
  type Snippet,
} from '../../../../../deploys/console/pages/account/quick-start.tsx';
import { startWorld } from '../../world.ts';
import { AUTHORITY, startDeploys, watchedOf } from '../../../started.ts';
import { addressOf } from '../../../../fakes/chain.ts';
import { temporaryFolder } from '../../../../started/gateway.ts';
import { childEnv, ROOT } from '../../../../started/process.ts';
import { startStack } from '../../../../started/stack.ts';

/** How a snippet is run: the file it goes to, what must succeed where the language is, and the command. */
type Way = Readonly<{ file: string; needs: readonly string[]; run: readonly string[]; advice?: string }>;

const CARGO = ['cargo', 'fetch', '--locked', '--offline', '--target', 'host-tuple'];
const WAYS: Readonly<Record<string, Way>> = {
  kit: { file: 'kit.ts', needs: [process.execPath, '--version'], run: [process.execPath, 'kit.ts'] },
  web3js: { file: 'web3.ts', needs: [process.execPath, '--version'], run: [process.execPath, 'web3.ts'] },
  rust: {
    file: 'src/main.rs',
    needs: CARGO,
    run: ['cargo', 'run', '--locked', '--offline', '--quiet'],
    advice: 'Rust, and once `cargo fetch` in test/deploys/console/pages/account/rust',
  },
  python: { file: 'first.py', needs: ['python3', '--version'], run: ['python3', 'first.py'] },
  go: { file: 'first.go', needs: ['go', 'version'], run: ['go', 'run', 'first.go'] },
  curl: { file: 'first.sh', needs: ['curl', '--version'], run: ['sh', 'first.sh'] },
};

/** Long enough for a compiler's first run on a busy machine. */
const RUN_MS_MAX = 150_000;

async function runIn(cwd: string, command: readonly string[]) {
  const { CARGO_HOME, RUSTUP_HOME, GOCACHE } = process.env;
  const env = childEnv({
    ...(CARGO_HOME && { CARGO_HOME }),
    ...(RUSTUP_HOME && { RUSTUP_HOME }),
    ...(GOCACHE && { GOCACHE }),
    GOTOOLCHAIN: 'local',
    CARGO_TARGET_DIR: join(cwd, 'target'),
  });
  try {
    const child = Bun.spawn([...command], { cwd, env, stdout: 'pipe', stderr: 'pipe', timeout: RUN_MS_MAX });
    const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()]);
    return { code: await child.exited, stdout, stderr };
  } catch (error) {
    return { code: -1, stdout: '', stderr: String(error) };
  }
}

/** A folder of its own inside the project, where its packages are found. */
const FOLDER = join(ROOT, `test/first-call-${process.pid}.gen`);

/** Writes the snippet with a key in the place of its placeholder. */
function write({ id, text }: Snippet, key: string): Way {
  const way = WAYS[id];
  if (way === undefined) throw new Error(`nothing runs ${id}`);
  expect(text.split(KEY_PLACEHOLDER)).toHaveLength(2);
  writeFileSync(join(FOLDER, way.file), text.replace(KEY_PLACEHOLDER, key));
  return way;
}

const absent = new Map<string, string>();
let service: Awaited<ReturnType<typeof startStack>>;
beforeAll(async () => {
  mkdirSync(join(FOLDER, 'src'), { recursive: true });
  for (const name of ['Cargo.toml', 'Cargo.lock'])
    copyFileSync(join(import.meta.dir, 'rust', name), join(FOLDER, name));
  writeFileSync(join(FOLDER, 'src/main.rs'), 'fn main() {}\n');
  service = await startStack();
  for (const [id, { needs, advice }] of Object.entries(WAYS)) {
    const { code, stderr } = await runIn(FOLDER, needs);
    if (code === 0) continue;
    absent.set(id, stderr);
    console.log(
      `The first call in ${id} is not tested here; it needs ${advice ?? needs[0]}. ${stderr.split('\n')[0]}`,
    );
  }
}, 60_000);
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  rmSync(FOLDER, { recursive: true });
});

describe('a first call, as it is copied, with a key put in', () => {
  test('is there for every language', () => {
    expect(rpcSnippets(service.url).map(({ id }) => id)).toEqual(Object.keys(WAYS));
  });
  test.each(Object.keys(WAYS))(
    'in %s gets the slot',
    async (id) => {
      if (absent.has(id)) return; // said above
      const snippet = rpcSnippets(service.url).find((each) => each.id === id);
      if (snippet === undefined) throw new Error(`no snippet ${id}`);
      const { run } = write(snippet, service.key('scale'));
      const { code, stdout, stderr } = await runIn(FOLDER, run);
      expect([code, stderr]).toEqual([0, '']);
      expect(stdout).toMatch(id === 'curl' ? /"result":\d+/ : /^slot \d+n?\n$/);
    },
    RUN_MS_MAX,
  );
});

test('the first call to the program API gets the programs', async () => {
  await using deploys = startDeploys(watchedOf('A'));
  deploys.chain.deploy(addressOf('A'), 5, AUTHORITY);
  await deploys.watch();
  await using server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    reusePort: false,
    fetch: (request) => deploys.answer(request),
  });
  using folder = temporaryFolder();
  const text = programsSnippet(server.url.origin);
  writeFileSync(join(folder.path, 'first.sh'), text.replace(KEY_PLACEHOLDER, deploys.key));
  const { stdout, stderr } = await runIn(folder.path, ['sh', 'first.sh']);
  expect(stderr).toBe('');
  expect(JSON.parse(stdout)).toMatchObject({ programs: [{ program_id: addressOf('A') }] });
});

describe('the page of the quick start', () => {
  test('has every language with the right address and no key', async () => {
    using world = startWorld();
    const acme = world.customer();
    const { key } = world.addKey('indexer');
    for (const { id } of rpcSnippets(new URL('https://rpc.example.com'))) {
      const { text } = await acme.get(`/accounts/1/quick-start?in=${id}`);
      expect(text).toContain('https://rpc.example.com/');
      expect(text).toContain(KEY_PLACEHOLDER);
      expect(text).not.toContain(key.slice(-4));
    }
  });
  test('of an account without an RPC plan has the program API alone', async () => {
    using world = startWorld();
    const { text } = await world.customer('other', null).get('/accounts/1/quick-start');
    expect(text).toContain('/api/v1/program-deploys/programs');
    expect(text).not.toContain('rpc.example.com');
  });
});
