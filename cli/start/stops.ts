import { readFileSync, readlinkSync } from 'node:fs';
import type { Clock } from '../../shared/clock.ts';
import type { Environment } from '../../shared/config/table.ts';

/** The user's wish to end: `asked` once for draining, `insisted` for ending at once. */
export type StopWishes = Readonly<{ asked: Promise<void>; insisted: Promise<void>; note(): void }>;

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

/** The processes of the system; `parentOf` gives `undefined` where the parent is unknown. */
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
