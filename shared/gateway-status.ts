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

type Kind = 'string' | 'number' | 'boolean' | 'null';
const STATUS = { version: 'string', processes: 'number', recent_seconds: 'number' } as const;
const BACKEND: Readonly<Record<Exclude<keyof BackendStatus, 'lanes'>, Kind | readonly Kind[]>> = {
  name: 'string',
  profile: 'string',
  in: 'boolean',
  why: ['string', 'null'],
  slot: ['number', 'null'],
  lag_slots: ['number', 'null'],
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
  kinds: Readonly<Record<string, Kind | readonly Kind[]>>,
): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const members = value as Record<string, unknown>; // an object
  return Object.entries(kinds).every(([name, kind]) =>
    [kind].flat().some((each) => each === (members[name] === null ? 'null' : typeof members[name])),
  );
}

function isListOf(value: unknown, isItem: (item: unknown) => boolean): boolean {
  return Array.isArray(value) && value.every(isItem);
}
