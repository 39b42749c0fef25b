import { systemClock } from '../../shared/clock.ts';
import { CallerConnection, type Reply, targetOf } from '../connection.ts';
import { AGAIN_MS, type Offer, type Outcome, OUTCOMES, untilOpen } from './load.ts';

const TURN_MS = 2;
/** Requests that are due and could not be sent for so long are left out, so that no storm follows a pause. */
const BEHIND_MS = 50;
/** What is not answered so long after the end is lost. */
const LATE_MS = 3_000;

/** Offers requests at a constant rate; gives every answer as so many numbers of `ANSWER_FIELDS`. */
export async function offer(options: Offer, signal: AbortSignal): Promise<Float32Array> {
  const { perSecond, connections, seconds, key, bodies, startMs } = options;
  const url = new URL(options.url);
  const target = targetOf({ url, key, keyAs: 'x-token' });
  const all = Array.from({ length: connections }, () => new CallerConnection(target, systemClock, Infinity));
  const idle = [...all];
  const numbers: number[] = [];
  const over = new AbortController();
  let [sent, open, skipped] = [0, 0, 0];
  await untilOpen(Number(url.port), signal);
  await systemClock.sleep(Math.max(0, (startMs ?? 0) - systemClock.now()), signal);
  const firstMs = systemClock.monotonic();
  // One that starts late still tells instants from when it was to begin.
  const beginMs = startMs === undefined ? firstMs : firstMs - (systemClock.now() - startMs);

  function send(): void {
    const connection = idle.shift();
    if (connection === undefined) return;
    const body = sent++ % bodies.length;
    const sentMs = systemClock.monotonic();
    open++;
    connection.send(bodies[body] ?? '', (reply) => {
      open--;
      // Nothing was sent: nobody listens there now.
      if (reply.kind === 'failure' && reply.reason.startsWith('no connection'))
        return void systemClock.sleep(AGAIN_MS, over.signal).then(() => idle.push(connection));
      const tookMs = systemClock.monotonic() - sentMs;
      numbers.push(sentMs - beginMs, tookMs, OUTCOMES.indexOf(outcomeOf(reply)), body);
      idle.push(connection);
    });
  }

  const endMs = firstMs + 1_000 * seconds;
  for (let nowMs = firstMs; nowMs < endMs && !signal.aborted; nowMs = systemClock.monotonic()) {
    const due = Math.floor(((nowMs - firstMs) / 1_000) * perSecond) - sent - skipped;
    const sendable = Math.min(due, idle.length);
    for (let i = 0; i < sendable; i++) send();
    skipped += Math.max(0, due - sendable - Math.ceil((perSecond * BEHIND_MS) / 1_000));
    await systemClock.sleep(TURN_MS, signal);
  }
  const lastMs = systemClock.monotonic() + LATE_MS;
  while (open > 0 && systemClock.monotonic() < lastMs) await systemClock.sleep(TURN_MS, signal);
  over.abort();
  for (const connection of all) connection.close();
  return Float32Array.from(numbers);
}

const MESSAGES: Readonly<Record<string, Outcome>> = {
  'Credit check unavailable': 'credits-unavailable',
  'No backend available': 'no-backend',
  'Key check unavailable': 'key-unavailable',
};

/** What an answer says. One whose status, code, message and headers do not say the same is strange. */
export function outcomeOf(reply: Reply): Outcome {
  if (reply.kind === 'failure') return 'lost';
  const { status, retryAfter = 0 } = reply;
  const text = reply.body.toString('latin1');
  if (status === 200) return text.includes('"result":') ? 'answered' : 'strange';
  if (!text.includes(`"code":-${status},`)) return 'strange';
  if (status === 402) return text.includes('"Trial credits used up"') ? 'out-of-credits' : 'strange';
  if (retryAfter < 1) return 'strange';
  const [, message = ''] = /"message":"([^"]*)"/.exec(text) ?? [];
  if (status === 429) return message.startsWith('Rate limit exceeded') ? 'over-rate' : 'strange';
  return status === 503 ? (MESSAGES[message] ?? 'strange') : 'strange';
}

if (import.meta.main) {
  const end = new AbortController();
  // It ends with whoever started it.
  process.stdin.on('end', () => end.abort()).resume();
  const answers = await offer(JSON.parse(process.argv[2] ?? '{}'), end.signal);
  await Bun.write(Bun.stdout, answers);
  process.exit(0);
}
