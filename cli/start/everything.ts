import { readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../shared/clock.ts';
import type { Environment } from '../../shared/config/table.ts';
import { type App, type AppName, type Death, launchApp } from './app.ts';

/** What runs, in order: the apps of one stage start together once the stage before is ready. */
type Run = Readonly<{
  stages: readonly (readonly AppName[])[];
  root: string;
  args: readonly string[];
  env: Environment;
  /** An app that takes longer to end is killed. */
  endMs: number;
  dataDir: string;
  clock: Clock;
  wishes: StopWishes;
  /** Called once, when every app listens; `urls` has one address per app. */
  ready: (urls: ReadonlyMap<AppName, string>) => void;
  err: (text: string) => void;
}>;

type End =
  | { readonly kind: 'asked' }
  | { readonly kind: 'died'; readonly death: Death }
  | { readonly kind: 'late'; readonly app: AppName };

/** Runs every app until the user asks to stop or one of them ends by itself; gives the exit code. */
export async function runEverything(run: Run): Promise<number> {
  const apps: App[] = [];
  const { wishes, err, dataDir } = run;
  const running = upTo(run, apps).catch(async (error) => {
    await stopAll(run, apps);
    throw error;
  });
  const end = await Promise.race([wishes.asked.then((): End => ({ kind: 'asked' })), running]);
  if (end.kind === 'died') {
    const { app, how, lastLines } = end.death;
    const sentence = `${app} exited (${how}), so everything is being stopped. Its log is ${logPath(dataDir, app)}.`;
    err(`${[...lastLines, sentence].join('\n')}\n`);
  }
  if (end.kind === 'late') err(`${end.app} was not ready in time; see ${logPath(dataDir, end.app)}.\n`);
  const insisted = wishes.insisted.then((): 'insisted' => 'insisted');
  const stopped = await Promise.race([insisted, stopAll(run, apps)]);
  if (stopped !== 'insisted') return end.kind === 'asked' && stopped === 'drained' ? 0 : 1;
  for (const app of apps) app.kill();
  return 130;
}

/** Starts stage after stage; ends with the first app that dies or is late. */
async function upTo({ stages, ready, ...launch }: Run, apps: App[]): Promise<End> {
  const urls = new Map<AppName, string>();
  for (const stage of stages) {
    const launched = stage.map((name) =>
      launchApp({ ...launch, name, logPath: logPath(launch.dataDir, name) }),
    );
    apps.push(...launched);
    const early = deathOf(apps);
    for (const app of launched) {
      const started = await Promise.race([app.started, early]);
      if (started.kind === 'died') return started;
      if (started.kind === 'late') return { kind: 'late', app: app.name };
      urls.set(app.name, started.url);
    }
  }
  ready(urls);
  return deathOf(apps);
}

async function deathOf(apps: readonly App[]): Promise<Extract<End, { kind: 'died' }>> {
  return { kind: 'died', death: await Promise.race(apps.map(({ death }) => death)) };
}

/** The last stage first, so that what drains still has what it needs. */
async function stopAll({ stages, err }: Run, apps: readonly App[]): Promise<'drained' | 'killed'> {
  let worst: 'drained' | 'killed' = 'drained';
  for (const stage of stages.toReversed()) {
    const members = apps.filter(({ name }) => stage.includes(name));
    const killed = await Promise.all(
      members.map(async (app) => ((await app.stop()) === 'killed' ? [app] : [])),
    );
    for (const { name } of killed.flat()) {
      worst = 'killed';
      err(`${name} did not stop in time and was killed.\n`);
    }
  }
  return worst;
}

function logPath(dataDir: string, app: AppName): string {
  return join(dataDir, `${app}.log`);
}

/** The user's wish to end: `asked` once for draining, `insisted` for ending at once. */
type StopWishes = Readonly<{ asked: Promise<void>; insisted: Promise<void>; note(): void }>;

/** A runner such as npm or `bun run` passes Ctrl-C on beside the terminal; copies within this time are one wish. */
const ONE_WISH_MS = 500;

/** Collects signals through `note`. */
export function createStopWishes(clock: Clock): StopWishes {
  const asked = Promise.withResolvers<void>();
  const insisted = Promise.withResolvers<void>();
  let firstMs: number | undefined;

  function note() {
    const nowMs = clock.monotonic();
    firstMs ??= nowMs;
    asked.resolve();
    if (nowMs - firstMs > ONE_WISH_MS) insisted.resolve();
  }

  return { asked: asked.promise, insisted: insisted.promise, note };
}

/** What is asked of the system; `parentOf` gives `undefined` where it cannot be told. */
export type ProcessTree = Readonly<{
  parentOf(pid: number): number | undefined;
  isNode(pid: number): boolean;
}>;

const CHECK_MS = 500;
/** `npx` puts at most its own process and a shell above `bun run`. */
const RUNNERS_MAX = 3;

/**
 * Calls `gone` when a package runner that started us is gone; runners pass on Ctrl-C, but when they are killed they
 * leave us behind with every port taken. Started by hand, we belong to nobody and outlive the shell.
 */
export async function watchRunners(
  { pid, env, clock }: Readonly<{ pid: number; env: Environment; clock: Clock }>,
  signal: AbortSignal,
  gone: () => void,
): Promise<void> {
  if (env['npm_lifecycle_event'] === undefined) return;
  const tree = processTree(pid);
  const underNpm = env['npm_config_user_agent']?.startsWith('npm/') === true;
  const runners = () => runnersOf(pid, underNpm, tree).join();
  const atStart = runners();
  while (runners() === atStart) {
    await clock.sleep(CHECK_MS, signal);
    if (signal.aborted) return;
  }
  gone();
}

/** The processes above `pid` that are part of the runner: `bun run`, and under npm all up to node. Nearest first. */
export function runnersOf(pid: number, underNpm: boolean, tree: ProcessTree): readonly number[] {
  const runners: number[] = [];
  let parent = tree.parentOf(pid);
  while (parent !== undefined && parent > 1 && runners.length < RUNNERS_MAX) {
    runners.push(parent);
    if (!underNpm || tree.isNode(parent)) return runners;
    parent = tree.parentOf(parent);
  }
  return runners.slice(0, 1);
}

function processTree(pid: number): ProcessTree {
  return {
    parentOf: (of) => (of === pid ? process.ppid : parentFromProc(of)),
    isNode: (of) => {
      try {
        return readlinkSync(`/proc/${of}/exe`).endsWith('/node');
      } catch {
        return false;
      }
    },
  };
}

function parentFromProc(pid: number): number | undefined {
  try {
    // The name in brackets may hold anything; the state and the parent follow the last bracket.
    const [, parent] = /\) \S (\d+) [^)]*$/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? [];
    return parent === undefined ? undefined : Number(parent);
  } catch {
    return undefined;
  }
}
