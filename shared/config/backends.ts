import type { Secret } from '../secret.ts';
import { flag, httpUrl, codings, integer, names, oneOf, secret, text } from './kinds.ts';
import { type Lane, LANES, PROFILE_NAMES, PROFILES } from './profiles.ts';
import type { Table } from './table.ts';

/** One full-history Solana RPC that the gateway calls, as the config declares it. */
export type BackendConfig = Readonly<ReturnType<typeof backendFrom>>;

/** The `[[backends]]` tables. Names are unique; an empty list means the embedded localnet. */
export function backendsFrom(root: Table): readonly BackendConfig[] {
  const backends = root.tables('backends').map(backendFrom);
  const seen = new Set<string>();
  for (const { name } of backends) {
    if (seen.has(name)) root.problem('backends', name, 'a unique name for each backend', '"agave-1"');
    seen.add(name);
  }
  return backends;
}

function backendFrom(table: Table) {
  const name = table.need('name', text('"agave-1"'), 'a name for logs and metrics');
  const url = table.need('url', httpUrl('"http://10.0.0.1:8899"'), 'the URL of the backend');
  const profile = table.takeOr('profile', oneOf(PROFILE_NAMES, '"agave"'), 'agave');
  const usual = PROFILES[profile];
  const lanes = table.takeOr('lanes', lanesKind, usual.lanes);
  /** Methods it serves beyond those of its lanes: provider extensions, `requestAirdrop`. */
  const methods = table.takeOr('methods', methodsKind, usual.methods);
  // A lane that the software serves nothing of, and a backend without a lane or method, are mistakes.
  const { mayServe } = usual;
  const wrong = !lanes.every((lane) => mayServe.includes(lane))
    ? `only lanes that ${profile} serves: ${mayServe.join(', ')}`
    : lanes.length === 0 && methods.length === 0 && 'at least one lane or method';
  if (wrong !== false) table.problem('lanes', lanes, wrong, JSON.stringify(mayServe.slice(0, 2)));
  return table.close({
    name: name ?? '?',
    url: url ?? new URL('http://127.0.0.1:1'),
    profile,
    lanes,
    methods,
    headers: headersFrom(table.table('headers')),
    /** Longest request body it takes, in bytes; `undefined` when it has no bound of its own. */
    bodyBytesMax: table.take('max_body_bytes', integer(256, 1_073_741_824, '51_200')) ?? usual.bodyBytesMax,
    /** Calls in flight to it from one gateway process. */
    connectionsMax: table.takeOr('max_connections', integer(1, 65_535, '512'), usual.connectionsMax),
    /** Whether a long answer that does not end in its id is taken to be whole because its framing ended. */
    trustsEnd: table.takeOr('trusts_end', flag, false),
    /** The codings that its answers may have, which are decoded here; none: it is asked for plain ones. */
    codings: table.takeOr('codings', codings, []),
  });
}

const lanesKind = names(
  (name): name is Lane => LANES.some((lane) => lane === name),
  `a list of lanes from ${LANES.join(', ')}`,
  '["state", "scan"]',
);

const methodsKind = names(
  (name): name is string => /^[A-Za-z][A-Za-z0-9_]{0,63}$/.test(name),
  'a list of method names',
  '["requestAirdrop"]',
);

/** Headers that the gateway sets itself or that frame the message; a config that overrode them would break requests. */
const OWN_HEADERS = /^(?:content-length|content-type|connection|host|transfer-encoding|accept-encoding)$/;

function headersFrom(table: Table): ReadonlyMap<string, Secret> {
  const headers = new Map<string, Secret>();
  for (const key of table.keys()) {
    const value = table.take(key, secret('"env:AGAVE_TOKEN"'));
    const name = key.toLowerCase();
    if (!/^[a-z0-9!#$%&'*+.^_`|~-]+$/.test(name) || OWN_HEADERS.test(name)) {
      const expected = 'a header that the gateway does not set itself';
      table.problem(key, key, expected, 'authorization = "env:AGAVE_TOKEN"');
    } else if (value !== undefined && /[^\t\x20-\x7e]/.test(value.reveal())) {
      table.problem(key, '[secret]', 'a header value of printable ASCII characters', '"env:AGAVE_TOKEN"');
    } else if (value !== undefined) headers.set(name, value);
  }
  return headers;
}
