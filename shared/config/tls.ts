import { accessSync, constants } from 'node:fs';
import type { GatewayConfig } from './config.ts';

/** A sentence when a file of the TLS settings cannot be read. */
export function unreadableTls(tls: GatewayConfig['tls']): string | undefined {
  for (const path of tls === undefined ? [] : [tls.certPath, tls.keyPath]) {
    try {
      accessSync(path, constants.R_OK);
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
      return `The file ${path} of gateway.tls cannot be read (${code}).`;
    }
  }
  return undefined;
}
