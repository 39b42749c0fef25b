import { systemClock } from '../../../shared/clock.ts';
import { admitted, offering, slowMs } from '../load.ts';
import { atLeast, atMost, exactly, type Finding, said } from '../finding.ts';
import { type Reader, startReader } from '../reader.ts';
import { CALL, startSubject } from '../subject.ts';

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

/** A trial asks for large answers, as often as it may, and reads none: a paying caller at a constant rate does not notice it. */
export async function starve(seconds: number, signal: AbortSignal): Promise<readonly Finding[]> {
  await using subject = await startSubject({ extra: `max_connections = ${CONNECTIONS}\n` });
  const { crew, inFlight } = subject;
  const to = { url: crew.url.href, key: crew.key('business'), bodies: [CALL], connections: 32 };
  const offered = () => offering({ ...to, perSecond: PER_SECOND, seconds: Math.ceil(seconds / 2) }, signal);
  const idle = await offered();

  const over = new AbortController();
  const end = AbortSignal.any([signal, over.signal]);
  const asking = ask(crew.url, crew.key('trial', 250_000), end);
  for (const sinceMs = systemClock.monotonic(); (await inFlight()) < CONNECTIONS;)
    if (end.aborted || systemClock.monotonic() - sinceMs > FILL_MS) break;
    else await systemClock.sleep(ASK_MS, end);
  const held = await inFlight();
  const beside = await offered();
  const evicted = await crew.metric('sluice_gateway_streams_cut_total{backend="a",reason="evicted"}');
  over.abort();
  await asking;
  return [
    atLeast('connections that it held', held, CONNECTIONS),
    said('answers of it that were cut', String(evicted ?? 0)),
    exactly('calls beside it that were not answered', beside.length - admitted(beside), 0),
    said('p99 of others without it, ms', slowMs(idle).toFixed(1)),
    atMost('p99 of others beside it, ms', slowMs(beside), Math.max(2 * slowMs(idle), FLOOR_MS), 1),
  ];
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
