import { Database } from 'bun:sqlite';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROGRAMS_PATH } from '../../../../deploys/api/programs.ts';
import { WEBHOOKS_PATH } from '../../../../deploys/api/webhook-routes.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../../../shared/keys/schema.ts';
import { createAuthority, selfSigned } from '../../../started/receiver-certificates.ts';
import { startDns } from '../../../started/receiver-dns.ts';
import { CONTENT, startReceiver, type Visit } from '../../../fakes/receiver.ts';
import { addKey, opened, temporaryFolder } from '../../../started/gateway.ts';
import { ROOT, runToEnd, startProcess } from '../../../started/process.ts';
import { until } from '../../../started/stack.ts';
import { javascript } from '../verifiers/snippet.ts';
import { hostileEnvironment } from './hostile.ts';
import { HOLE, PUBLIC } from '../../../started/namespace.ts';

/**
 * A whole internet in a network namespace, and in it the app as an operator starts it, under a hostile environment: a
 * chain, webhooks made through the API, a real upgrade by the command line. Prints what came of it, as JSON.
 */
const NAME = 'hooks.example.com';
const POLL_SECONDS = 1;

using folder = temporaryFolder();
const inFolder = (name: string) => join(folder.path, name);

/** Names that lead elsewhere once a webhook of theirs was made. */
let isLater = false;
const ZONE: Readonly<Record<string, readonly string[]>> = {
  [NAME]: [PUBLIC],
  'other.example.com': [PUBLIC],
  'private.example.com': ['10.0.0.1'],
  'loopback.example.com': ['127.0.0.1'],
  'mixed.example.com': [PUBLIC, '::1'],
  'lost.example.org.example.com': [PUBLIC],
};
/** Where names lead once a webhook of theirs was made; until then to the good receiver. */
const LATER: Readonly<Record<string, readonly string[] | 'no-such-name' | 'server-failure' | 'silent'>> = {
  'nx.example.com': 'no-such-name',
  'broken.example.com': 'server-failure',
  'hole.example.com': [HOLE],
  'half.example.com': [HOLE, PUBLIC],
  'nowhere.example.com': ['1.1.1.1'],
  'rebind.example.com': ['127.0.0.1'],
  'metadata.example.com': ['169.254.169.254'],
  // The search list leads on to a name of the good receiver.
  'lost.example.org': 'no-such-name',
};
/** More names whose servers are silent than a resolver with a few threads could wait for. */
const MUTE = Array.from({ length: 10 }, (_, i) => `mute${i}`);
using _dns = await startDns((name, type, nth) => {
  // Public and inward answers by turns, as the question comes.
  if (name === 'turning.example.com')
    return type === 'AAAA' ? [] : [isLater && nth % 2 === 1 ? '127.0.0.1' : PUBLIC];
  if (isLater && name.startsWith('mute')) return 'silent';
  // Old name servers leave questions for AAAA without an answer.
  if (name === 'lame.example.com') return type === 'A' ? [PUBLIC] : 'silent';
  const later = LATER[name];
  if (isLater && typeof later === 'string') return later;
  if (later !== undefined || name.startsWith('mute'))
    return type === 'AAAA' ? [] : isLater && typeof later === 'object' ? later : [PUBLIC];
  const addresses = ZONE[name];
  return addresses?.filter((address) => address.includes(':') === (type === 'AAAA')) ?? 'no-such-name';
}, 53);

const authority = createAuthority();
const good = authority.issue({
  dns: [NAME, ...['mixed', 'rebind', 'turning', 'half', 'lame'].map((name) => `${name}.example.com`)],
  ips: [PUBLIC, '127.0.0.1'],
});
writeFileSync(inFolder('ca.pem'), authority.cert);
const content = (visit: Visit) => visit.send(CONTENT);
const arrivals: number[] = [];
const note = (visit: Visit) => (arrivals.push(Date.now()), visit.send(CONTENT));
using receiver = await startReceiver({ certificate: good, script: note, host: PUBLIC, port: 443 });
using impostor = await startReceiver({
  certificate: selfSigned({ dns: [NAME] }),
  script: content,
  host: PUBLIC,
  port: 8443,
});
using loopback = await startReceiver({ certificate: good, script: content, port: 443 });
using internal = await startReceiver({ certificate: good, script: content, host: '10.0.0.1', port: 443 });
using proxy = await startReceiver({ script: (visit) => visit.end(), port: 3128 });

const aliases = inFolder('aliases');
writeFileSync(aliases, `hooks.example.com loopback.example.com\nhooks loopback.example.com\n`);
const HOSTILE = {
  ...hostileEnvironment(`http://127.0.0.1:${proxy.port}`),
  HOSTALIASES: aliases,
  LOCALDOMAIN: 'example.com',
  RES_OPTIONS: 'ndots:15 attempts:9 timeout:30',
  SSLKEYLOGFILE: inFolder('keys.log'),
};

const storage = `[storage]\ndata_dir = "${inFolder('data')}"\n`;
const [chainConfig, config] = [inFolder('chain.toml'), inFolder('sluice.toml')];
writeFileSync(chainConfig, `${storage}[localnet]\nlisten = "127.0.0.1:8890"\nslot_ms = 50\nrooted_lag = 2\n`);
await using chain = await startProcess(
  [join(ROOT, 'localnet/main.ts'), '--config', chainConfig],
  folder.path,
);
writeFileSync(
  config,
  `${storage}[deploys]\nlisten = "127.0.0.1:0"\nmetrics = "127.0.0.1:0"\n` +
    `rpc_urls = ["${chain.url.href}"]\npoll_seconds = ${POLL_SECONDS}\n`,
);
const app = await startProcess([join(ROOT, 'deploys/main.ts'), '--config', config], folder.path, {
  ...HOSTILE,
  NODE_EXTRA_CA_CERTS: inFolder('ca.pem'),
});
const accounts = opened(inFolder(`data/${ACCOUNTS_FILE}`), ACCOUNTS_MIGRATIONS);
const headers = { 'x-token': addKey(accounts, null) };
accounts.close();

async function make(url: string) {
  const init = { method: 'POST', headers, body: JSON.stringify({ url }) };
  const response = await fetch(new URL(WEBHOOKS_PATH, app.url), init);
  const { webhook, secret } = (await response.json()) as any; // oxlint-disable-line no-explicit-any -- the report shows what is not there
  return { status: response.status, id: webhook?.id, secret };
}

const INWARD = {
  loopback: 'https://127.0.0.1/',
  loopbackHex: 'https://0x7f.1/',
  loopbackSix: 'https://[::1]/',
  mapped: 'https://[::ffff:127.0.0.1]/',
  loopbackName: 'https://loopback.example.com/',
  localhost: 'https://localhost/',
  privateLiteral: 'https://10.0.0.1/',
  privateName: 'https://private.example.com/',
  mixed: 'https://mixed.example.com/',
  metadata: 'https://169.254.169.254/latest/meta-data/',
  alias: 'https://hooks/',
  plain: `http://${NAME}/`,
};
const refused: Record<string, unknown> = {};
for (const [key, url] of Object.entries(INWARD)) refused[key] = (await make(url)).status;

/** Webhooks of the good receiver, some of which are led elsewhere by hand or by their names. */
const made: Record<string, Awaited<ReturnType<typeof make>>> = {};
made['good'] = await make(`https://${NAME}/hook?a=b`);
made['literal'] = await make(`https://${PUBLIC}/hook`);
made['selfSigned'] = await make(`https://${NAME}:8443/`);
made['wrongName'] = await make('https://other.example.com/');
const NAMES = ['rebind', 'metadata', 'turning', 'nx', 'broken', 'hole', 'half', 'nowhere', 'lame', ...MUTE];
for (const name of NAMES) made[name] = await make(`https://${name}.example.com/`);
made['searched'] = await make('https://lost.example.org/');
const FORCED = [
  'loopback',
  'loopbackSix',
  'mapped',
  'loopbackName',
  'privateLiteral',
  'privateName',
] as const;
for (const key of FORCED) made[key] = await make(`https://${NAME}/forced`);
const database = new Database(inFolder(`data/${ACCOUNTS_FILE}`));
database.run('PRAGMA busy_timeout = 5000');
for (const key of FORCED) {
  const url = new URL(INWARD[key]);
  database.run('UPDATE webhooks SET url = ?, host = ? WHERE id = ?', [
    url.href,
    url.hostname,
    made[key]?.id ?? '',
  ]);
}
isLater = true;

/** A program of the first reading: the deploy after it is one that is told. */
const { programId } = await until(async () =>
  database
    .query<{ programId: string }, []>(
      "SELECT program_id AS programId FROM programs WHERE status = 'upgradeable'",
    )
    .get(),
);
const main = join(ROOT, 'cli/main.ts');
const upgraded = await runToEnd(
  [main, 'localnet', 'upgrade', programId, '--config', chainConfig, '--json'],
  folder.path,
);
const upgrade = JSON.parse(upgraded.stdout);

/** The first delivery of a webhook once its first attempt has ended. */
async function firstAttempt(id: string) {
  return until(async () => {
    const row = database
      .query<Record<string, unknown>, [string]>(
        `SELECT d.id, d.state, d.last_status AS status, d.last_error AS error, a.remote_address AS remote, a.state AS how
         FROM deliveries d JOIN attempts a ON a.delivery_id = d.id AND a.n = 1 WHERE d.webhook_id = ?`,
      )
      .get(id);
    return row?.['how'] === 'started' ? undefined : row;
  });
}
const attempts: Record<string, unknown> = {};
for (const [key, { id }] of Object.entries(made)) {
  const { status, error, how, remote } = await firstAttempt(id);
  attempts[key] = { how, status, error, remote };
}

const shown = await fetch(new URL(`${PROGRAMS_PATH}?program_id=${programId}`, app.url), { headers });
const { programs } = (await shown.json()) as any; // oxlint-disable-line no-explicit-any -- held to the schema in test/contract

writeFileSync(inFolder('verify.mjs'), javascript('verify.ts'));
const { verify } = await import(inFolder('verify.mjs'));
const field = (text: string, name: string) => new RegExp(`\r\n${name}: (.*)\r`, 'i').exec(text)?.[1] ?? '';
const visits = receiver.visits().map(({ text }, i) => {
  const body = Buffer.from(text.slice(text.indexOf('\r\n\r\n') + 4), 'latin1');
  const event = JSON.parse(body.toString());
  const check = (secret: string) =>
    verify(
      secret,
      field(text, 'x-service-timestamp'),
      body,
      field(text, 'x-service-signature'),
      Date.now() / 1_000,
    );
  return {
    path: text.split(' ')[1],
    event,
    isOfItsSecret: Object.values(made).filter(({ secret }) => check(secret)).length,
    delivery: field(text, 'x-service-delivery'),
    afterDetectionMs: (arrivals[i] ?? NaN) - Date.parse(event.data.detected_at),
  };
});

app.kill('SIGTERM');
const code = await app.exited;
database.close();
console.log(
  JSON.stringify({
    refused,
    made: Object.fromEntries(Object.entries(made).map(([key, { status }]) => [key, status])),
    upgrade,
    shownSlot: programs?.[0]?.deploy_slot,
    attempts,
    visits,
    code,
    reached: {
      loopback: loopback.connections(),
      internal: internal.connections(),
      proxy: proxy.connections(),
      impostorRequests: impostor.visits().length,
    },
    keyLog: existsSync(HOSTILE.SSLKEYLOGFILE),
  }),
);
await chain[Symbol.asyncDispose]();
folder[Symbol.dispose]();
process.exit(0);
