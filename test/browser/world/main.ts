import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createAuthority } from '../../started/receiver-certificates.ts';
import { startDns } from '../../started/receiver-dns.ts';
import { CONTENT, startReceiver } from '../../fakes/receiver.ts';
import { PUBLIC } from '../../started/namespace.ts';
import { ROOT, startProcess } from '../../started/process.ts';
import { startRelay } from '../../started/relay.ts';
import { CONTROL, HOOKS, type Ports, socketOf } from './place.ts';

/**
 * Runs inside a network namespace: a chain, the gateway and deploys as an operator starts them, a name server, and a
 * receiver at an address that is public there. Each listener is reached from outside by a socket in the folder of the
 * arguments, where the config stands. Prints a line when all is there, and ends with its standard input.
 */
const [folder = '', ports = ''] = process.argv.slice(2);
const { chain, gateway, deploys } = JSON.parse(ports) as Ports; // written by start.ts

using _dns = await startDns((name, type) => {
  if (name !== HOOKS) return 'no-such-name';
  return type === 'AAAA' ? [] : [PUBLIC];
}, 53);
const authority = createAuthority();
const certificates = join(folder, 'ca.pem');
writeFileSync(certificates, authority.cert);
using receiver = await startReceiver({
  certificate: authority.issue({ dns: [HOOKS] }),
  script: (visit) => visit.send(CONTENT),
  host: PUBLIC,
  port: 443,
});

const config = join(folder, 'sluice.toml');
const start = (app: string) =>
  startProcess([join(ROOT, app, 'main.ts'), '--config', config], folder, {
    NODE_EXTRA_CA_CERTS: certificates,
  });
await using _localnet = await start('localnet');
await using _deploys = await start('deploys');
await using _gateway = await start('gateway');

using _chainRelay = await startRelay({ path: socketOf(folder, 'chain') }, { port: chain });
using _gatewayRelay = await startRelay({ path: socketOf(folder, 'gateway') }, { port: gateway });
using _deploysRelay = await startRelay({ path: socketOf(folder, 'deploys') }, { port: deploys });
/** What the receiver was sent so far. */
const control = Bun.serve({
  unix: socketOf(folder, CONTROL),
  fetch: () => Response.json(receiver.visits().map(({ text }) => text)),
});

console.log('{"ready":"world"}');
for await (const _ of Bun.stdin.stream());
await control.stop(true);
