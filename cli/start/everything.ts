import { join } from 'node:path';
import type { Clock } from '../../shared/clock.ts';
import type { Environment } from '../../shared/config/table.ts';
import { type App, type AppName, type Death, launchApp } from './app.ts';
import type { StopWishes } from './stop-wishes.ts';

/** What runs, in order: the apps of one stage start together once the stage before is ready. */
export type Plan = Readonly<{
  stages: readonly (readonly AppName[])[];
  root: string;
  args: readonly string[];
  env: Environment;
  /** An app that takes longer to end is killed. */
  endMs: number;
  dataDir: string;
}>;

export type Deps = Readonly<{
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
export async function runEverything(plan: Plan, deps: Deps): Promise<number> {
  const apps: App[] = [];
  const { wishes, err } = deps;
  const running = upTo(plan, deps, apps).catch(async (error) => {
    await stopAll(plan, apps, err);
    throw error;
  });
  const end = await Promise.race([wishes.asked.then((): End => ({ kind: 'asked' })), running]);
  if (end.kind === 'died') err(obituary(end.death, plan.dataDir));
  if (end.kind === 'late')
    err(`${end.app} is not ready yet and is given up; see ${logPath(plan, end.app)}.\n`);
  const code = end.kind === 'asked' ? 0 : 1;
  const insisted = wishes.insisted.then((): 'insisted' => 'insisted');
  const stopped = await Promise.race([insisted, stopAll(plan, apps, err)]);
  if (stopped !== 'insisted') return stopped === 'killed' ? 1 : code;
  for (const app of apps) app.kill();
  return 130;
}

/** Starts stage after stage; ends with the first app that dies or is late. */
async function upTo(plan: Plan, { clock, ready }: Deps, apps: App[]): Promise<End> {
  const urls = new Map<AppName, string>();
  for (const stage of plan.stages) {
    const launched = stage.map((name) => launchApp({ ...plan, name, logPath: logPath(plan, name), clock }));
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
async function stopAll(
  { stages }: Plan,
  apps: readonly App[],
  err: (text: string) => void,
): Promise<'drained' | 'killed'> {
  let worst: 'drained' | 'killed' = 'drained';
  for (const stage of stages.toReversed()) {
    const members = apps.filter(({ name }) => stage.includes(name));
    for (const [i, how] of (await Promise.all(members.map((app) => app.stop()))).entries()) {
      if (how === 'drained') continue;
      worst = 'killed';
      err(`${members[i]?.name} did not stop in time and was killed.\n`);
    }
  }
  return worst;
}

function obituary({ app, how, lastLines }: Death, dataDir: string): string {
  const lines = [
    ...lastLines,
    `${app} ended (${how}), so everything stops; its log is ${join(dataDir, `${app}.log`)}.`,
  ];
  return `${lines.join('\n')}\n`;
}

function logPath({ dataDir }: Plan, app: AppName): string {
  return join(dataDir, `${app}.log`);
}
