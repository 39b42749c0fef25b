import { readdirSync, readFileSync } from 'node:fs';

/** Memory of a process in bytes: all that is resident, and the part of it that is no file's. */
export type Memory = Readonly<{ residentBytes: number; anonymousBytes: number }>;

/** Clock ticks of /proc in a second: USER_HZ, 100 on every Linux that Bun runs on. */
const TICKS_PER_SECOND = 100;

/** Reads the text of /proc/PID/status (proc(5)). */
export function memoryFrom(status: string): Memory {
  const bytes = (name: string) =>
    1_024 * Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]);
  return { residentBytes: bytes('VmRSS'), anonymousBytes: bytes('RssAnon') };
}

/**
 * Reads the CPU seconds (user and system, all threads) from the text of /proc/PID/stat: fields 14 and 15. The name
 * in field 2 may hold blanks and parentheses, so fields are counted from its last parenthesis.
 */
export function cpuSecondsFrom(stat: string): number {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/** Reads the sum of a gauge over its labels from Prometheus text; NaN when it is not there. */
export function gaugeFrom(text: string, name: string): number {
  const found = [...text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'gm'))];
  return found.length === 0 ? Number.NaN : found.reduce((sum, [, value]) => sum + Number(value), 0);
}

/** Memory of a running process (Linux). */
export function memoryOf(pid: number): Memory {
  return memoryFrom(readFileSync(`/proc/${pid}/status`, 'utf8'));
}

/** CPU seconds a running process has used, to 10 ms (Linux). */
export function cpuSecondsOf(pid: number): number {
  return cpuSecondsFrom(readFileSync(`/proc/${pid}/stat`, 'utf8'));
}

/** Open file descriptors of a running process (Linux). */
export function descriptorsOf(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}
