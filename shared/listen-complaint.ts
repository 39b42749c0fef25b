import type { Listen } from './config/kinds.ts';

/** One sentence for the operator when the address of the config's `key` cannot be listened on. */
export function listenComplaint(key: string, { hostname, port }: Listen, error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
  const why = code === 'EADDRINUSE' ? 'another process has it' : code;
  return `The address ${hostname}:${port} cannot be listened on (${why}); free it or change ${key} in the config.`;
}
