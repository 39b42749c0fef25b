import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Makes the namespace's network; `$1` is a resolv.conf. What follows it is run. */
const NETWORK = `set -e
ip link set lo up
ip addr add 198.41.0.44/32 dev lo
ip addr add 10.0.0.1/32 dev lo
ip link add hole type veth peer name end
ip link set hole up
ip link set end up
ip route add 198.41.0.99/32 dev hole
ip neigh add 198.41.0.99 lladdr 02:00:00:00:00:01 dev hole
ip route add local 23.192.0.0/12 dev lo
mount --bind "$1" /etc/resolv.conf
shift
exec "$@"`;

/** An address that is public to the code; in the namespace it is this machine's. */
export const PUBLIC = '198.41.0.44';
/** Public, and routed to a device that swallows everything. */
export const HOLE = '198.41.0.99';
/** The nth of a million public addresses that are this machine's in the namespace. */
export const nthPublic = (n: number) => `23.${192 + ((n >> 16) & 15)}.${(n >> 8) & 255}.${n & 255}`;

/** Runs commands in a network namespace of their own, where 127.0.0.1 is the name server. */
export function createNamespace() {
  const folder = mkdtempSync(join(tmpdir(), 'resolv-'));
  const resolvPath = join(folder, 'resolv.conf');
  // A search list that would lead a name that is not found to the good receiver.
  writeFileSync(resolvPath, 'nameserver 127.0.0.1\nsearch example.com\n');
  const inside = (...command: string[]) => [
    'unshare',
    '-rnm',
    'sh',
    '-c',
    NETWORK,
    'sh',
    resolvPath,
    ...command,
  ];

  return {
    inside,
    /** Why there can be no namespace here; `undefined` if there can. */
    reasonAgainst(): string | undefined {
      try {
        const { exitCode, stderr } = Bun.spawnSync(inside('true'), { timeout: 10_000 });
        return exitCode === 0 ? undefined : stderr.toString().trim() || `exit code ${exitCode}`;
      } catch (error) {
        return error instanceof Error ? error.message : 'unknown';
      }
    },
    /** Runs a script of this project inside, and gives what it prints as JSON. */
    async report<T>(path: string, timeoutMs: number): Promise<T> {
      const child = Bun.spawn(inside(process.execPath, path), {
        stdin: 'ignore',
        stdout: 'pipe',
        stderr: 'inherit',
        timeout: timeoutMs,
      });
      return JSON.parse(await new Response(child.stdout).text());
    },
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}
