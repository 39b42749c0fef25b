import { createLines } from '../lines.ts';
import type { World } from '../command.ts';

/** One program of the verification, run to its end or to its deadline. */
export type Step = Readonly<{ title: string; command: readonly string[]; msMax: number }>;

/** Exit code, or `null` when the step was killed. */
export type StepEnd = Readonly<{ code: number | null }>;

/** Runs a step in the project's root and passes its output on as it comes; `line` sees every line of it. */
export async function runStep(
  { title, command, msMax }: Step,
  { root, env, out }: Pick<World, 'root' | 'env' | 'out'>,
  line: (text: string) => void = () => {},
): Promise<StepEnd> {
  out(`\n== ${title}\n`);
  const child = Bun.spawn([...command], {
    cwd: root,
    env,
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
    timeout: msMax,
    killSignal: 'SIGKILL',
  });
  await Promise.all([pass(child.stdout), pass(child.stderr), child.exited]);
  if (child.signalCode !== null)
    out(`${title} was ended by ${child.signalCode}, at most ${msMax / 1_000} s are allowed.\n`);
  return { code: child.exitCode };

  async function pass(stream: ReadableStream<Uint8Array>) {
    const decoder = new TextDecoder();
    const feed = createLines(line);
    for await (const bytes of stream) {
      out(decoder.decode(bytes, { stream: true }));
      feed(bytes);
    }
  }
}
