import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isSigned } from '../is-signed.ts';
import { Secret } from '../../../../shared/secret.ts';
import { createAuthority, selfSigned } from '../../../fakes/receiver-certificates.ts';
import { startDns } from '../../../fakes/receiver-dns.ts';
import { silent } from '../../../fakes/receiver-faults.ts';
import { CONTENT, startReceiver } from '../../../fakes/receiver.ts';
import { hostileEnvironment } from './hostile.ts';
import { HOLE, PUBLIC } from './network.ts';

const NAME = 'hooks.example.com';

const ZONE: Readonly<Record<string, readonly string[]>> = {
  [NAME]: [PUBLIC],
  'other.example.com': [PUBLIC],
  'private.example.com': ['10.0.0.1'],
  'mixed.example.com': [PUBLIC, '::1'],
  'mapped.example.com': [`::ffff:${PUBLIC}`],
  'hole.example.com': [HOLE],
  'half.example.com': [HOLE, PUBLIC],
  'nowhere.example.com': ['1.1.1.1'],
  // What the search list makes of lost.example.org.
  'lost.example.org.example.com': [PUBLIC],
};

/** A whole internet in a network namespace of its own: receivers, a name server, and the sender as a process. */
const authority = createAuthority();
const names = [NAME, 'mixed.example.com', 'half.example.com', 'rebind.example.com', 'lame.example.com'];
const good = authority.issue({ dns: names, ips: [PUBLIC, '127.0.0.1'] });
const folder = mkdtempSync(join(tmpdir(), 'namespace-'));
const caPath = join(folder, 'ca.pem');
writeFileSync(caPath, authority.cert);

using dns = await startDns((name, type, nth) => {
  if (name.startsWith('mute')) return 'silent';
  if (name === 'broken.example.com') return 'server-failure';
  // AAAA is asked for, and never answered: common with old name servers.
  if (name === 'lame.example.com') return type === 'A' ? [PUBLIC] : 'silent';
  if (name === 'rebind.example.com') return type === 'AAAA' ? [] : [nth === 1 ? PUBLIC : '127.0.0.1'];
  const addresses = ZONE[name] ?? [];
  if (ZONE[name] === undefined) return 'no-such-name';
  return addresses.filter((address) => address.includes(':') === (type === 'AAAA'));
}, 53);
using receiver = await startReceiver({
  certificate: good,
  script: (visit) => visit.send(CONTENT),
  host: PUBLIC,
  port: 443,
});
using impostor = await startReceiver({
  certificate: selfSigned({ dns: [NAME] }),
  script: silent,
  host: PUBLIC,
  port: 8443,
});
using inside = await startReceiver({ certificate: good, script: silent, host: '127.0.0.1', port: 443 });
using metadata = await startReceiver({ certificate: good, script: silent, host: '10.0.0.1', port: 443 });
using proxy = await startReceiver({ script: silent, port: 3128 });

type Result = Readonly<{ how: string; detail: string }>;

/** Runs the sender with an environment of its own. */
async function run(
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<Result[]> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, 'main.ts'), ...args], {
    env: { PATH: process.env['PATH'] ?? '', HOME: folder, NODE_EXTRA_CA_CERTS: caPath, ...environment },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'inherit',
  });
  return JSON.parse(await new Response(child.stdout).text());
}

const PROXY = `http://127.0.0.1:${proxy.port}`;
const HOSTILE = hostileEnvironment(PROXY);
const URLS = {
  good: `https://${NAME}/hook`,
  literal: `https://${PUBLIC}/hook`,
  wrongName: 'https://other.example.com/',
  selfSigned: `https://${NAME}:8443/`,
  loopback: 'https://127.0.0.1/',
  loopbackHex: 'https://0x7f.1/',
  loopbackSix: 'https://[::1]/',
  loopbackMapped: 'https://[::ffff:127.0.0.1]/',
  localhost: 'https://localhost/',
  private: 'https://private.example.com/',
  privateLiteral: 'https://10.0.0.1/',
  mixed: 'https://mixed.example.com/',
  mapped: 'https://mapped.example.com/',
  noSuchName: 'https://nx.example.com/',
  brokenDns: 'https://broken.example.com/',
  silentDns: 'https://mute.example.com/',
  halfSilentDns: 'https://lame.example.com/',
  noRoute: 'https://nowhere.example.com/',
  hole: 'https://hole.example.com/',
  halfHole: 'https://half.example.com/',
  searched: 'https://lost.example.org/',
};
/** Names that would keep a resolver with a few threads busy for longer than a lookup may take. */
const MUTE = Array.from({ length: 30 }, (_, i) => `https://mute${i}.example.com/`);
const keys = Object.keys(URLS);
const [plain, hostile, rebind, untrusting] = await Promise.all([
  run([...MUTE, ...Object.values(URLS)], {}),
  run(Object.values(URLS), HOSTILE),
  run(['--in-turn', 'https://rebind.example.com/', 'https://rebind.example.com/'], {}),
  run([URLS.good], { NODE_EXTRA_CA_CERTS: '' }),
]);
const byKey = (results: readonly Result[]) => Object.fromEntries(keys.map((key, i) => [key, results[i]]));
const field = (text: string, name: string) => new RegExp(`${name}: (.*)\r`, 'i').exec(text)?.[1] ?? '';
console.log(
  JSON.stringify({
    mute: plain.slice(0, MUTE.length),
    plain: byKey(plain.slice(MUTE.length)),
    hostile: byKey(hostile),
    rebind,
    untrusting,
    reached: {
      inside: inside.connections(),
      metadata: metadata.connections(),
      proxy: proxy.connections(),
      impostorRequests: impostor.visits().length,
    },
    requests: receiver.visits().length,
    signed: receiver.visits().every(({ text }) => {
      const headers = {
        timestamp: field(text, 'x-service-timestamp'),
        signature: field(text, 'x-service-signature'),
      };
      const body = Buffer.from(text.split('\r\n\r\n')[1] ?? '');
      return isSigned(new Secret('whsec_namespace'), headers, body, Math.floor(Date.now() / 1_000));
    }),
    asked: dns.asked(NAME, 'A'),
  }),
);
rmSync(folder, { recursive: true });
process.exit(0);
