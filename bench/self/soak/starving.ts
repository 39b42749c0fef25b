import { systemClock } from '../../../shared/clock.ts';
import { admitted, type Answers, slowMs } from '../answers.ts';
import { offering } from '../offering.ts';
import { type Reader, startReader } from '../reader.ts';
import { atLeast, atMost, exactly, type Finding, said } from './finding.ts';
import { CALL, startSubject } from './subject.ts';

/** A paying caller's answers without and beside an account that reads none of its own. */
type Starved = Readonly<{
  idle: Answers;
  beside: Answers;
  /** Connections of the backend that the account held when the second load began. */
  held: number;
  /** Answers of it that were cut. */
  evicted: number;
}>;

/** As many as a trial has calls at once: it could hold them all. */
const CONNECTIONS = 16;
const PER_SECOND = 200;
/** A trial may ask for 13 MB five times a second. */
const ASK_MS = 200;
const HUGE =
  '{"jsonrpc":"2.0","id":1,"method":"getMultipleAccounts","params":["x",{"bytes":13000000,"framing":"length"}]}';
/** The account holds all connections by then, unless it is held off. */
const FILL_MS = 10_000;
/** A machine that does something else for a moment makes any short time twice as long. */
const FLOOR_MS = 5;

/** A trial account asks for large answers, as often as it may, and reads none, beside a paying caller at a constant rate. */
export async function starve(seconds: number, signal: AbortSignal): Promise<Starved> {
  const extra = `max_connections = ${CONNECTIONS}\n`;
  await using subject = await startSubject({ processes: 1, extra });
  const { crew } = subject;
  const key = crew.key('business');
  const load = { bodies: [CALL], perSecond: PER_SECOND, connections: 32, seconds: Math.ceil(seconds / 2) };
  const offered = () => offering({ url: crew.url.href, key, ...load }, signal);
  const count = async (name: string) => (await crew.metric(`sluice_gateway_${name}`)) ?? 0;
  const inFlight = () => count('backend_calls_in_flight{backend="a"}');
  const idle = await offered();

  const over = new AbortController();
  const end = AbortSignal.any([signal, over.signal]);
  const asking = ask(crew.url, crew.key('trial', 250_000), end);
  for (const sinceMs = systemClock.monotonic(); (await inFlight()) < CONNECTIONS;)
    if (end.aborted || systemClock.monotonic() - sinceMs > FILL_MS) break;
    else await systemClock.sleep(ASK_MS, end);
  const held = await inFlight();
  const beside = await offered();
  const evicted = await count('streams_cut_total{backend="a",reason="evicted"}');
  over.abort();
  await asking;
  return { idle, beside, held, evicted };
}

/** Asks until `signal` aborts. */
async function ask(url: URL, key: string, signal: AbortSignal): Promise<void> {
  const readers: Promise<Reader>[] = [];
  while (!signal.aborted) {
    readers.push(startReader(url, key, HUGE, { kind: 'paused' }, signal));
    await systemClock.sleep(ASK_MS, signal);
  }
  await Promise.allSettled(readers);
}

/** That the paying caller does not notice it. */
export function isolation({ idle, beside, held, evicted }: Starved): readonly Finding[] {
  return [
    atLeast('connections that it held', held, CONNECTIONS),
    said('answers of it that were cut', String(evicted)),
    exactly('calls beside it that were not answered', beside.length - admitted(beside), 0),
    said('p99 of others without it, ms', slowMs(idle).toFixed(1)),
    atMost('p99 of others beside it, ms', slowMs(beside), Math.max(2 * slowMs(idle), FLOOR_MS), 1),
  ];
}
