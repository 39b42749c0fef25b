import { type BackendConfig, backendsFrom } from './backends.ts';
import {
  type Coding,
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
} from './kinds.ts';
import { type Plan, plansFrom, type Prices, pricesFrom } from './plans.ts';
import { type Environment, type Kind, openTable, type Problem, type Table, type Unset } from './table.ts';
import type { Secret } from '../secret.ts';

export type GatewayConfig = Readonly<{
  listen: Listen;
  metrics: Listen;
  /** The RPC endpoint as its callers reach it; the console shows it. */
  publicUrl: URL;
  /** Processes sharing the port. */
  processes: number;
  /** A stream or a request silent for this long is cut. */
  idleMs: number;
  bodyBytesMax: number;
  /** How long answers under way may take to end after a stop. */
  drainMs: number;
  /** Between two looks at every backend. */
  probeMs: number;
  /** Slots behind the others at which a backend is left out. */
  lagSlotsMax: number;
  /** Whether a light read that is late is sent to a second backend too. */
  hedge: boolean;
  /** The longest time to the first byte of an attempt, by class of method; those without a key of their own are light. */
  deadlinesMs: Readonly<Record<'light' | 'history' | 'scan' | 'send', number>>;
  /** Memory for answers that never change, in each process; 0: none is kept. */
  cacheBytes: number;
  /** What large plain answers are compressed by for callers that accept it, in order of preference. */
  compress: readonly Coding[];
  /** Whether answers say which backend gave them, and at which slot. */
  tellBackend: boolean;
  tls: Readonly<{ certPath: string; keyPath: string }> | undefined;
}>;

export type DeploysConfig = Readonly<{
  listen: Listen;
  metrics: Listen;
  /** The console's address as its users reach it. */
  publicUrl: URL;
  /** What the watcher reads through, in order of preference. */
  rpcUrls: readonly URL[];
  rpcKey: Secret | undefined;
  /** Metrics listeners of the gateways that the console shows. */
  gatewayUrls: readonly URL[];
  /** A list of programs to watch instead of the built-in one. */
  programsPath: string | undefined;
  pollMs: number;
  /** Whether anybody may make a login and an account at the console. */
  signUp: boolean;
  /** Whether operators must have a second factor before they see anything. */
  operatorsNeedSecondFactor: boolean;
  /** The header in which the proxy in front says the client's address, in lower case. */
  clientAddressHeader: string | undefined;
  /** Absent: e-mail and password alone. */
  oidc: OidcConfig | undefined;
}>;

export type StorageConfig = Readonly<{
  dataDir: string;
  secret: Secret | undefined;
  redisUrl: Secret | undefined;
}>;

/** The embedded chain; it runs when no backend is configured. */
type LocalnetConfig = Readonly<{ listen: Listen; slotMs: number; rootedLag: number }>;

export type Config = Readonly<{
  gateway: GatewayConfig;
  deploys: DeploysConfig;
  storage: StorageConfig;
  localnet: LocalnetConfig;
  /** Empty: the embedded localnet is the one backend. */
  backends: readonly BackendConfig[];
  plans: ReadonlyMap<string, Plan>;
  prices: Prices;
}>;

type ConfigResult =
  | { readonly kind: 'config'; readonly config: Config }
  | { readonly kind: 'problems'; readonly problems: readonly Problem[] };

/** A whole config from a parsed TOML document, or every problem at once. Pure; `{}` gives the embedded default. */
export function configFrom(document: unknown, env: Environment, unset: Unset = 'is-wrong'): ConfigResult {
  const problems: Problem[] = [];
  const root = openTable(document, '', env, problems, unset);
  const backends = backendsFrom(root);
  const localnet = localnetFrom(root.table('localnet'));
  const gateway = gatewayFrom(root.table('gateway'), root.table('deadlines'));
  const config: Config = {
    gateway,
    deploys: deploysFrom(
      root.table('deploys'),
      backends.length === 0 ? urlOf(localnet.listen) : gatewayUrl(gateway),
      urlOf(gateway.metrics),
    ),
    storage: storageFrom(root.table('storage')),
    localnet,
    backends,
    plans: plansFrom(root),
    prices: pricesFrom(root),
  };
  fileSharedAddresses(root, config);
  root.close();
  return problems.length > 0 ? { kind: 'problems', problems } : { kind: 'config', config };
}

/** Two listeners on one address cannot both start. */
function fileSharedAddresses(root: Table, { gateway, deploys, localnet, backends }: Config): void {
  const listeners: [string, Listen][] = [
    ['gateway.listen', gateway.listen],
    ['gateway.metrics', gateway.metrics],
    ['deploys.listen', deploys.listen],
    ['deploys.metrics', deploys.metrics],
  ];
  if (backends.length === 0) listeners.push(['localnet.listen', localnet.listen]);
  const seen = new Map<string, string>();
  for (const [key, { hostname, port }] of listeners) {
    const address = `${hostname}:${port}`;
    const other = port === 0 ? undefined : seen.get(address);
    if (other !== undefined) root.problem(key, address, `another address than ${other}`, '"127.0.0.1:8899"');
    seen.set(address, key);
  }
}

/** The http address of a listener as a local client reaches it. */
export function urlOf({ hostname, port }: Listen): URL {
  const host = hostname === '0.0.0.0' ? '127.0.0.1' : hostname === '::' ? '::1' : hostname;
  return new URL(`http://${host.includes(':') ? `[${host}]` : host}:${port}`);
}

/** The gateway's own address, as a program on the same host reaches it. */
export function gatewayUrl({ listen, tls }: Pick<GatewayConfig, 'listen' | 'tls'>): URL {
  const url = urlOf(listen);
  if (tls !== undefined) url.protocol = 'https:';
  return url;
}

function gatewayFrom(table: Table, deadlines: Table): GatewayConfig {
  const tls = table.has('tls') ? tlsFrom(table.table('tls')) : undefined;
  const address = table.takeOr('listen', listen, { hostname: '127.0.0.1', port: 8899 });
  const gateway: GatewayConfig = {
    listen: address,
    metrics: table.takeOr('metrics', listen, { hostname: '127.0.0.1', port: 9464 }),
    publicUrl: table.takeOr(
      'public_url',
      httpUrl('"https://rpc.example.com"'),
      gatewayUrl({ listen: address, tls }),
    ),
    processes: table.takeOr('processes', integer(1, 256, '2'), 1),
    idleMs: 1_000 * table.takeOr('idle_seconds', integer(1, IDLE_SECONDS_MAX, '120'), 120),
    bodyBytesMax: table.takeOr('max_body_bytes', integer(1_024, 134_217_728, '1_048_576'), 1_048_576),
    drainMs: 1_000 * table.takeOr('drain_seconds', integer(1, 3_600, '25'), 25),
    probeMs: 1_000 * table.takeOr('probe_seconds', integer(1, 60, '2'), 2),
    deadlinesMs: deadlinesFrom(deadlines),
    lagSlotsMax: table.takeOr('max_lag_slots', integer(2, 10_000, '16'), 16),
    hedge: table.takeOr('hedge', flag, false),
    cacheBytes: table.takeOr('cache_bytes', integer(0, 17_179_869_184, '67_108_864'), 67_108_864),
    compress: table.takeOr('compress', codings, []),
    tellBackend: table.takeOr('tell_backend', flag, false),
    tls,
  };
  table.close();
  return gateway;
}

function deadlinesFrom(table: Table): GatewayConfig['deadlinesMs'] {
  const secondsOf = (name: string, usual: number) =>
    1_000 * table.takeOr(name, integer(1, DEADLINE_SECONDS_MAX, String(usual)), usual);
  const deadlinesMs = {
    light: secondsOf('light', 10),
    history: secondsOf('history', 30),
    scan: secondsOf('scan', 300),
    send: secondsOf('send', 20),
  };
  table.close();
  return deadlinesMs;
}

/** A scan of all there is takes minutes on a node; what takes longer than this hangs. */
const DEADLINE_SECONDS_MAX = 1_800;

/** Bun's server counts idle seconds in one byte, and its limit is a little above this one. */
const IDLE_SECONDS_MAX = 240;

function tlsFrom(table: Table): GatewayConfig['tls'] {
  const [certPath, keyPath] = [table.take('cert', text('"cert.pem"')), table.take('key', text('"key.pem"'))];
  if (!table.has('cert')) table.problem('cert', undefined, 'a PEM file, as tls.key is set', '"cert.pem"');
  if (!table.has('key')) table.problem('key', undefined, 'a PEM file, as tls.cert is set', '"key.pem"');
  table.close();
  return certPath === undefined || keyPath === undefined ? undefined : { certPath, keyPath };
}

function deploysFrom(table: Table, rpcUrl: URL, metricsUrl: URL): DeploysConfig {
  const address = table.takeOr('listen', listen, { hostname: '127.0.0.1', port: 8910 });
  const deploys: DeploysConfig = {
    listen: address,
    metrics: table.takeOr('metrics', listen, { hostname: '127.0.0.1', port: 9465 }),
    publicUrl: table.takeOr('public_url', httpUrl('"https://console.example.com"'), urlOf(address)),
    rpcUrls: table.takeOr('rpc_urls', httpUrls, [rpcUrl]),
    rpcKey: table.take('rpc_key', secret('"env:SLUICE_WATCHER_KEY"')),
    gatewayUrls: table.takeOr('gateways', httpUrls, [metricsUrl]),
    programsPath: table.take('programs', text('"programs.json"')),
    pollMs: 1_000 * table.takeOr('poll_seconds', integer(1, 3_600, '60'), 60),
    signUp: table.takeOr('sign_up', flag, false),
    operatorsNeedSecondFactor: table.takeOr('operators_need_second_factor', flag, false),
    clientAddressHeader: table.take('client_address_header', headerName),
    oidc: table.has('oidc') ? oidcFrom(table.table('oidc')) : undefined,
  };
  table.close();
  return deploys;
}

function storageFrom(table: Table): StorageConfig {
  const storage: StorageConfig = {
    dataDir: table.takeOr('data_dir', text('"./data"'), './data'),
    secret: table.take('secret', sealingKey),
    redisUrl: table.take('redis', redisUrl),
  };
  table.close();
  return storage;
}

function localnetFrom(table: Table): LocalnetConfig {
  const localnet: LocalnetConfig = {
    listen: table.takeOr('listen', listen, { hostname: '127.0.0.1', port: 8890 }),
    slotMs: table.takeOr('slot_ms', integer(10, 60_000, '400'), 400),
    rootedLag: table.takeOr('rooted_lag', integer(1, 512, '32'), 32),
  };
  table.close();
  return localnet;
}

/** An OpenID Connect provider that users may log in through. */
export type OidcConfig = Readonly<{
  /** As the provider calls itself; with or without a slash at the end is not the same. */
  issuer: string;
  clientId: string;
  clientSecret: Secret;
  /** What the login page calls it. */
  name: string;
}>;

/** The address of a provider: TLS, or this machine. */
const issuer: Kind<string> = {
  expected: 'an https:// URL (http:// only for 127.0.0.1 and localhost)',
  example: '"https://login.example.com"',
  read: (value) =>
    typeof value === 'string' &&
    URL.canParse(value) &&
    /^(?:https:\/\/|http:\/\/(?:127\.0\.0\.1|localhost)(?::\d+)?(?:\/|$))/.test(value)
      ? value
      : undefined,
};

const REQUIRED = {
  issuer: issuer.example,
  client_id: '"sluice"',
  client_secret: '"env:SLUICE_OIDC_SECRET"',
} as const;

/** `[deploys.oidc]`, which is there as a whole or not at all. */
function oidcFrom(table: Table): OidcConfig | undefined {
  const values = {
    issuer: table.take('issuer', issuer),
    clientId: table.take('client_id', text(REQUIRED.client_id)),
    clientSecret: table.take('client_secret', secret(REQUIRED.client_secret)),
    name: table.takeOr('name', text('"Single sign-on"'), 'Single sign-on'),
  };
  for (const [key, example] of Object.entries(REQUIRED)) {
    if (!table.has(key))
      table.problem(key, undefined, 'a value, as [deploys.oidc] is incomplete without it', example);
  }
  table.close();
  const { issuer: address, clientId, clientSecret, name } = values;
  if (address === undefined || clientId === undefined || clientSecret === undefined) return undefined;
  return { issuer: address, clientId, clientSecret, name };
}
