import type { ConnectionConfig } from '@solana/web3.js';
import { PollingConnection } from '../../examples/polling-connection.ts';

/** The connection of the examples at the pace of the tests' chain, which is eight times that of a cluster. */
export function quickly(url: string, config: ConnectionConfig = {}): PollingConnection {
  const connection = new PollingConnection(url, { commitment: 'confirmed', ...config });
  return Object.assign(connection, { pollMs: 50 });
}
