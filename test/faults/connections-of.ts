import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** The callers' ports of the connections that a process has accepted on `port` of 127.0.0.1 (Linux). */
export function callerPortsOf(pid: number, port: number): ReadonlySet<number> {
  const inodes = new Set<string>();
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    const [, inode] = /^socket:\[(\d+)\]$/.exec(target(`/proc/${pid}/fd/${fd}`)) ?? [];
    if (inode !== undefined) inodes.add(inode);
  }
  const callers = new Set<number>();
  for (const line of readFileSync(`/proc/${pid}/net/tcp`, 'utf8').split('\n').slice(1)) {
    const [, local = '', remote = '', , , , , , , inode = ''] = line.trim().split(/\s+/);
    if (portIn(local) === port && portIn(remote) !== 0 && inodes.has(inode)) callers.add(portIn(remote));
  }
  return callers;
}

/** Where a link leads; nowhere when it has just gone. */
function target(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}

function portIn(address: string): number {
  return Number.parseInt(address.split(':')[1] ?? '0', 16);
}
