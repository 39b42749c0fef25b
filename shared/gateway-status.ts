/** How one backend stands, as a gateway sees it. */
export type BackendStatus = Readonly<{
  name: string;
  profile: string;
  lanes: readonly string[];
  /** Whether it takes part; when it does not, its last calls failed, or it is slow, `why` says so in a few words. */
  in: boolean;
  why: string | null;
  /** Its newest confirmed slot, and how far it is behind the others; `null`: not known. */
  slot: number | null;
  lag_slots: number | null;
  in_flight: number;
  max_connections: number;
  /** Answers that began and failures that were its own in the last `recent_seconds`. */
  recent_answered: number;
  recent_failed: number;
}>;

/** What `GET /status.json` of a gateway's metrics listener says, of all its processes together. */
export type GatewayStatus = Readonly<{
  version: string;
  /** Processes that are told of here. */
  processes: number;
  recent_seconds: number;
  backends: readonly BackendStatus[];
}>;

/** A status of parsed JSON; `undefined` for anything else, such as another version's. */
export function gatewayStatusFrom(value: unknown): GatewayStatus | undefined {
  return isStatus(value) ? value : undefined;
}

function isStatus(value: unknown): value is GatewayStatus {
  if (!isObject(value)) return false;
  const { version, processes, recent_seconds, backends } = value;
  return (
    typeof version === 'string' &&
    typeof processes === 'number' &&
    typeof recent_seconds === 'number' &&
    Array.isArray(backends) &&
    backends.every(isBackend)
  );
}

const NUMBERS = ['in_flight', 'max_connections', 'recent_answered', 'recent_failed'];

function isBackend(value: unknown): value is BackendStatus {
  if (!isObject(value)) return false;
  const { name, profile, lanes, why, slot, lag_slots } = value;
  return (
    typeof name === 'string' &&
    typeof profile === 'string' &&
    Array.isArray(lanes) &&
    lanes.every((lane) => typeof lane === 'string') &&
    typeof value['in'] === 'boolean' &&
    (why === null || typeof why === 'string') &&
    [slot, lag_slots].every((number) => number === null || typeof number === 'number') &&
    NUMBERS.every((key) => typeof value[key] === 'number')
  );
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
