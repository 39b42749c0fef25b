import { backendsFrom } from './backends.ts';
import {
  codings,
  flag,
  headerName,
  httpUrl,
  httpUrls,
  integer,
  type Listen,
  listen,
  redisUrl,
  sealingKey,
  secret,
  text,
  written,
} from './kinds.ts';
import { plansFrom, pricesFrom } from './plans.ts';
import { type Environment, type Kind, type Problem, Table, type Unset } from './table.ts';

export type Config = ReturnType<typeof readConfig>;
export type GatewayConfig = Config['gateway'];
export type DeploysConfig = Config['deploys'];
export type StorageConfig = Config['storage'];
export type OidcConfig = NonNullable<DeploysConfig['oidc']>;

/** A whole config from a parsed TOML document, or every problem at once. Pure; `{}` gives the embedded default. */
export function configFrom(document: unknown, env: Environment, unset: Unset = 'is-wrong') {
  const problems: Problem[] = [];
  const config = readConfig(new Table(document, '', { env, problems, unset }));
  if (problems.length > 0) return { kind: 'problems', problems } as const;
  return { kind: 'config', config } as const;
}

function readConfig(root: Table) {
  /** Empty: the embedded localnet is the one backend. */
  const backends = backendsFrom(root);
  const localnet = localnetFrom(root.table('localnet'));
  const gateway = gatewayFrom(root.table('gateway'), root.table('deadlines'));
  const rpcUrl = backends.length === 0 ? urlOf(localnet.listen) : gatewayUrl(gateway);
  const deploys = deploysFrom(root.table('deploys'), rpcUrl, urlOf(gateway.metrics));
  const storage = storageFrom(root.table('storage'));
  const listeners: [string, Listen][] = [
    ['gateway.listen', gateway.listen],
    ['gateway.metrics', gateway.metrics],
    ['deploys.listen', deploys.listen],
    ['deploys.metrics', deploys.metrics],
  ];
  if (backends.length === 0) listeners.push(['localnet.listen', localnet.listen]);
  const config = {
    gateway,
    deploys,
    storage,
    localnet,
    backends,
    plans: plansFrom(root),
    prices: pricesFrom(root),
  };
  fileSharedAddresses(root, listeners);
  return root.close(config);
}

/** Two listeners on one address cannot both start. */
function fileSharedAddresses(root: Table, listeners: readonly [string, Listen][]): void {
  const seen = new Map<string, string>();
  for (const [key, { hostname, port }] of listeners) {
    const address = `${hostname}:${port}`;
    const other = port === 0 ? undefined : seen.get(address);
    if (other !== undefined) root.problem(key, address, `another address than ${other}`, '"127.0.0.1:8899"');
    seen.set(address, key);
  }
}

/** The http address of a listener as a local client reaches it. */
export function urlOf({ hostname, port }: Listen, scheme = 'http'): URL {
  const host = hostname === '0.0.0.0' ? '127.0.0.1' : hostname === '::' ? '::1' : hostname;
  return new URL(`${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`);
}

/** The gateway's own address, as a program on the same host reaches it. */
export function gatewayUrl({ listen, tls }: Pick<GatewayConfig, 'listen' | 'tls'>): URL {
  return urlOf(listen, tls === undefined ? 'http' : 'https');
}

/** A scan of all there is takes minutes on a node; what takes longer than this hangs. */
const DEADLINE_SECONDS_MAX = 1_800;

/** Bun's server counts idle seconds in one byte, and its limit is a little above this one. */
const IDLE_SECONDS_MAX = 240;

function gatewayFrom(table: Table, deadlines: Table) {
  const tls = table.has('tls') ? tlsFrom(table.table('tls')) : undefined;
  const address = table.takeOr('listen', listen, { hostname: '127.0.0.1', port: 8899 });
  const ownUrl = gatewayUrl({ listen: address, tls });
  const bodyBytesMax = table.takeOr('max_body_bytes', integer(1_024, 134_217_728, '1_048_576'), 1_048_576);
  // One account gets at most three quarters of it, of which a longest body must find room.
  const bodiesBytesMin = 1.5 * bodyBytesMax;
  const bodiesBytes =
    table.take('bodies_bytes', integer(65_536, 17_179_869_184, '134_217_728')) ??
    Math.max(134_217_728, bodiesBytesMin);
  if (bodiesBytes < bodiesBytesMin)
    table.problem(
      'bodies_bytes',
      bodiesBytes,
      'one and a half times gateway.max_body_bytes',
      String(bodiesBytesMin),
    );
  return table.close({
    listen: address,
    metrics: table.takeOr('metrics', listen, { hostname: '127.0.0.1', port: 9464 }),
    /** The RPC endpoint as its callers reach it; the console shows it. */
    publicUrl: table.takeOr('public_url', httpUrl('"https://rpc.example.com"'), ownUrl),
    /** Processes sharing the port. */
    processes: table.takeOr('processes', integer(1, 256, '2'), 1),
    /** A stream or a request silent for this long is cut. */
    idleMs: 1_000 * table.takeOr('idle_seconds', integer(1, IDLE_SECONDS_MAX, '120'), 120),
    bodyBytesMax,
    /** Memory for request bodies under way, in each process. */
    bodiesBytes,
    /** How long answers under way may take to end after a stop. */
    drainMs: 1_000 * table.takeOr('drain_seconds', integer(1, 3_600, '25'), 25),
    /** Between two looks at every backend. */
    probeMs: 1_000 * table.takeOr('probe_seconds', integer(1, 60, '2'), 2),
    deadlinesMs: deadlinesFrom(deadlines),
    /** Slots behind the others at which a backend is left out. */
    lagSlotsMax: table.takeOr('max_lag_slots', integer(2, 10_000, '16'), 16),
    /** Whether a light read that is late is sent to a second backend too. */
    hedge: table.takeOr('hedge', flag, false),
    /** Memory for answers that never change, in each process; 0: none is kept. */
    cacheBytes: table.takeOr('cache_bytes', integer(0, 17_179_869_184, '67_108_864'), 67_108_864),
    /** Codings of large plain answers for callers that accept them, in order of preference. */
    compress: table.takeOr('compress', codings, []),
    /** Whether answers say which backend gave them, and at which slot. */
    tellBackend: table.takeOr('tell_backend', flag, false),
    tls,
  });
}

/** The longest time to the first byte of an attempt, by class of method; those without a key of their own are light. */
function deadlinesFrom(table: Table) {
  const msOf = (name: string, usual: number) =>
    1_000 * table.takeOr(name, integer(1, DEADLINE_SECONDS_MAX, String(usual)), usual);
  return table.close({
    light: msOf('light', 10),
    history: msOf('history', 30),
    scan: msOf('scan', 300),
    send: msOf('send', 20),
  });
}

function tlsFrom(table: Table) {
  const certPath = table.need('cert', text('"cert.pem"'), 'a PEM file, as tls.key is set');
  const keyPath = table.need('key', text('"key.pem"'), 'a PEM file, as tls.cert is set');
  return table.close(certPath === undefined || keyPath === undefined ? undefined : { certPath, keyPath });
}

function deploysFrom(table: Table, rpcUrl: URL, metricsUrl: URL) {
  const address = table.takeOr('listen', listen, { hostname: '127.0.0.1', port: 8910 });
  return table.close({
    listen: address,
    metrics: table.takeOr('metrics', listen, { hostname: '127.0.0.1', port: 9465 }),
    /** The console's address as its users reach it. */
    publicUrl: table.takeOr('public_url', httpUrl('"https://console.example.com"'), urlOf(address)),
    /** Sources of the watcher, in order of preference. */
    rpcUrls: table.takeOr('rpc_urls', httpUrls, [rpcUrl]),
    rpcKey: table.take('rpc_key', secret('"env:SLUICE_WATCHER_KEY"')),
    /** Metrics listeners of the gateways that the console shows. */
    gatewayUrls: table.takeOr('gateways', httpUrls, [metricsUrl]),
    /** A list of programs to watch instead of the built-in one. */
    programsPath: table.take('programs', text('"programs.json"')),
    pollMs: 1_000 * table.takeOr('poll_seconds', integer(1, 3_600, '60'), 60),
    /** Whether anybody may make a login and an account at the console. */
    signUp: table.takeOr('sign_up', flag, false),
    /** Whether operators must have a second factor before they see anything. */
    operatorsNeedSecondFactor: table.takeOr('operators_need_second_factor', flag, false),
    /** The header in which the proxy in front says the client's address, in lower case. */
    clientAddressHeader: table.take('client_address_header', headerName),
    /** Absent: email and password alone. */
    oidc: table.has('oidc') ? oidcFrom(table.table('oidc')) : undefined,
  });
}

function storageFrom(table: Table) {
  return table.close({
    dataDir: table.takeOr('data_dir', text('"./data"'), './data'),
    secret: table.take('secret', sealingKey),
    redisUrl: table.take('redis', redisUrl),
  });
}

/** The embedded chain; it runs when no backend is configured. */
function localnetFrom(table: Table) {
  return table.close({
    listen: table.takeOr('listen', listen, { hostname: '127.0.0.1', port: 8890 }),
    slotMs: table.takeOr('slot_ms', integer(10, 60_000, '400'), 400),
    rootedLag: table.takeOr('rooted_lag', integer(1, 512, '32'), 32),
    /** Files of accounts that the chain is given. */
    accountsDir: table.take('accounts', text('"accounts"')),
  });
}

/** The address of a provider: TLS, or this machine. */
const issuerUrl = written(
  'an https:// URL (http:// only for 127.0.0.1 and localhost)',
  '"https://login.example.com"',
  (value) => {
    const isSafe = /^(?:https:\/\/|http:\/\/(?:127\.0\.0\.1|localhost)(?::\d+)?(?:\/|$))/.test(value);
    return isSafe && URL.canParse(value) ? value : undefined;
  },
);

/** `[deploys.oidc]`, an OpenID Connect provider that users may log in through: there as a whole or not at all. */
function oidcFrom(table: Table) {
  const need = <T>(key: string, kind: Kind<T>) =>
    table.need(key, kind, 'a value, as [deploys.oidc] is incomplete without it');
  /** As the provider calls itself; with or without a slash at the end is not the same. */
  const issuer = need('issuer', issuerUrl);
  const clientId = need('client_id', text('"sluice"'));
  const clientSecret = need('client_secret', secret('"env:SLUICE_OIDC_SECRET"'));
  /** Its name on the login page. */
  const name = table.takeOr('name', text('"Single sign-on"'), 'Single sign-on');
  const isWhole = issuer !== undefined && clientId !== undefined && clientSecret !== undefined;
  return table.close(isWhole ? { issuer, clientId, clientSecret, name } : undefined);
}
