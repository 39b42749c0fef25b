import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ACCOUNTS_FILE } from '../../../shared/keys/schema.ts';
import type { createNamespace } from '../../started/namespace.ts';
import { sluiceAlone } from '../../cli/sluice.ts';
import { JSON_HEADERS, temporaryFolder } from '../../started/gateway.ts';
import { freePort } from '../../started/ports.ts';
import { startRelay } from '../../started/relay.ts';
import { inviteOperator } from '../people.ts';
import { CONTROL, type Ports, socketOf } from './place.ts';

/** The credits of a new trial in this world: enough for a few calls. */
export const TRIAL_CREDITS = 30;

/** Starts the whole service in a network namespace, and reaches it on the ports that it has there. */
export async function startWorld(namespace: ReturnType<typeof createNamespace>) {
  const stack = new AsyncDisposableStack();
  const folder = stack.use(temporaryFolder());
  const ports: Ports = { chain: freePort(), gateway: freePort(), deploys: freePort(), metrics: freePort() };
  const config = join(folder.path, 'sluice.toml');
  writeFileSync(config, configOf(folder.path, ports));
  const main = join(import.meta.dir, 'main.ts');
  const child = Bun.spawn(namespace.inside(process.execPath, main, folder.path, JSON.stringify(ports)), {
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'inherit',
  });
  stack.defer(async () => {
    await child.stdin.end();
    await child.exited;
  });
  await firstLine(child.stdout);
  for (const name of ['chain', 'gateway', 'deploys'] as const)
    stack.use(await startRelay({ port: ports[name] }, { path: socketOf(folder.path, name) }));

  const origin = `http://127.0.0.1:${ports.deploys}`;
  return {
    origin,
    /** A link as `bun start` prints it, beside the running app. */
    firstOperatorLink: () => inviteOperator(join(folder.path, 'data', ACCOUNTS_FILE), origin),
    /** One call through the gateway. */
    call: (key: string, method: string, params: readonly unknown[] = []) =>
      fetch(`http://127.0.0.1:${ports.gateway}/`, {
        method: 'POST',
        headers: { ...JSON_HEADERS, 'x-token': key },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      }),
    /** Requests to the receiver so far, whole. */
    async visits(): Promise<readonly string[]> {
      const answer = await fetch('http://control/', { unix: socketOf(folder.path, CONTROL) });
      return (await answer.json()) as readonly string[]; // main.ts gives texts
    },
    /** Redeploys a program of the chain with real loader transactions; gives its new slot. */
    async upgrade(programId: string): Promise<number> {
      const { code, out, err } = await sluiceAlone(
        folder.path,
        `localnet upgrade ${programId} --config ${config} --json`.split(' '),
      );
      if (code !== 0) throw new Error(err);
      return (JSON.parse(out) as { deploy_slot: number }).deploy_slot; // the contract of the command line
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

export type StartedWorld = Awaited<ReturnType<typeof startWorld>>;

function configOf(folder: string, { chain, gateway, deploys, metrics }: Ports): string {
  return `[storage]
data_dir = "${join(folder, 'data')}"
[localnet]
listen = "127.0.0.1:${chain}"
slot_ms = 100
rooted_lag = 4
[gateway]
listen = "127.0.0.1:${gateway}"
metrics = "127.0.0.1:${metrics}"
[deploys]
listen = "127.0.0.1:${deploys}"
metrics = "127.0.0.1:0"
rpc_urls = ["http://127.0.0.1:${chain}"]
poll_seconds = 1
sign_up = true
[[backends]]
name = "localnet"
url = "http://127.0.0.1:${chain}"
[plans.trial]
rps = 100
burst = 200
credits = ${TRIAL_CREDITS}
`;
}

/** Waits for a child's first line; its end without a line is an error. */
async function firstLine(stdout: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<void> {
  let text = '';
  for await (const part of stdout.pipeThrough(new TextDecoderStream())) {
    text += part;
    if (text.includes('\n')) return;
  }
  throw new Error(`the world in the namespace did not start: ${text}`);
}
