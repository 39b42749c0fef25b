import { join } from 'node:path';

/** The listeners of the three apps and the gateway's metrics; the same numbers inside the namespace and outside. */
export type Ports = Readonly<{ chain: number; gateway: number; deploys: number; metrics: number }>;

/** The receiver's name in the namespace. */
export const HOOKS = 'hooks.example.com';
/** The socket that tells what the receiver was sent. */
export const CONTROL = 'control';

/** Where a listener of the namespace is reached from outside it. */
export function socketOf(folder: string, name: keyof Ports | typeof CONTROL): string {
  return join(folder, `${name}.socket`);
}
