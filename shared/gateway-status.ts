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

/** The answer to `GET /status.json` of a gateway's metrics listener, of all its processes together. */
export type GatewayStatus = Readonly<{
  version: string;
  /** Processes that are summed up here. */
  processes: number;
  recent_seconds: number;
  backends: readonly BackendStatus[];
}>;

/** The type in JSON under each name; with a question mark, it may be null. */
const STATUS = { version: 'string', processes: 'number', recent_seconds: 'number' };
const BACKEND: Readonly<Record<Exclude<keyof BackendStatus, 'lanes'>, string>> = {
  name: 'string',
  profile: 'string',
  in: 'boolean',
  why: 'string?',
  slot: 'number?',
  lag_slots: 'number?',
  in_flight: 'number',
  max_connections: 'number',
  recent_answered: 'number',
  recent_failed: 'number',
};

/** A status of parsed JSON; `undefined` for anything else, such as another version's. */
export function gatewayStatusFrom(value: unknown): GatewayStatus | undefined {
  return isStatus(value) ? value : undefined;
}

function isStatus(value: unknown): value is GatewayStatus {
  return hasMembers(value, STATUS) && isListOf(value['backends'], isBackend);
}

function isBackend(value: unknown): boolean {
  return hasMembers(value, BACKEND) && isListOf(value['lanes'], (lane) => typeof lane === 'string');
}

function hasMembers(
  value: unknown,
  kinds: Readonly<Record<string, string>>,
): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const members = new Map<string, unknown>(Object.entries(value));
  return Object.entries(kinds).every(([name, kind]) => {
    const member = members.get(name);
    return member === null ? kind.endsWith('?') : typeof member === kind.replace('?', '');
  });
}

function isListOf(value: unknown, isItem: (item: unknown) => boolean): boolean {
  return Array.isArray(value) && value.every(isItem);
}
