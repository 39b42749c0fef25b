import { systemClock } from '../../shared/clock.ts';
import { ANSWER_FIELDS, type Offer, type Outcome, OUTCOMES } from './load.ts';
import { keyAt } from './many-keys.ts';
import { requestOf } from './reader.ts';

/** One connection: what it waits for, and when that was sent. */
type Line = { socket: Bun.Socket<Line> | undefined; text: string; sentMs: number; body: number };

const TURN_MS = 2;
/** A connection that was refused or broke is tried again after this pause. */
const AGAIN_MS = 20;
/** Requests that are due and could not be sent for so long are left out, so that no storm follows a pause. */
const BEHIND_MS = 50;
/** What is not answered so long after the end is lost. */
const LATE_MS = 3_000;

/** Offers requests at a constant rate; gives every answer as so many numbers of `ANSWER_FIELDS`. */
export async function offer(options: Offer, signal: AbortSignal): Promise<Float32Array> {
  const { perSecond, connections, seconds, key, bodies } = options;
  const url = new URL(options.url);
  const keys = typeof key === 'string' ? [key] : Array.from({ length: key }, (_, i) => keyAt(i + 1));
  const requests = keys.flatMap((each) => bodies.map((body) => Buffer.from(requestOf(url, each, body))));
  const numbers: number[] = [];
  const idle: Line[] = [];
  const lines = new Set<Line>();
  const over = new AbortController();
  const startMs = systemClock.monotonic();

  function note(line: Line, outcome: Outcome): void {
    const tookMs = systemClock.monotonic() - line.sentMs;
    numbers.push(line.sentMs - startMs, tookMs, OUTCOMES.indexOf(outcome), line.body % bodies.length);
    line.body = -1;
  }

  function read(socket: Bun.Socket<Line>, bytes: Buffer): void {
    const line = socket.data;
    line.text += bytes.toString('latin1');
    if (!isWhole(line.text)) return;
    if (line.body >= 0) note(line, outcomeOf(line.text));
    const closes = /\r\nconnection: close\r\n/i.test(line.text);
    line.text = '';
    if (closes) socket.end();
    else idle.push(line);
  }

  function broke({ data: line }: Bun.Socket<Line>): void {
    if (line.socket === undefined) return;
    line.socket = undefined;
    if (line.body >= 0) note(line, 'lost');
    line.text = '';
    const place = idle.indexOf(line);
    if (place >= 0) idle.splice(place, 1);
    void connect(line);
  }

  async function connect(line: Line): Promise<void> {
    while (!over.signal.aborted) {
      const socket = { data: read, close: broke, error: broke };
      const made = await Bun.connect<Line>({
        hostname: url.hostname,
        port: Number(url.port),
        data: line,
        socket,
      }).catch(() => undefined);
      if (made !== undefined) {
        line.socket = made;
        made.setNoDelay(true);
        return void idle.push(line);
      }
      await systemClock.sleep(AGAIN_MS, over.signal);
    }
  }

  function send(count: number): void {
    const line = idle.shift();
    if (line?.socket === undefined) return;
    line.body = count % requests.length;
    line.sentMs = systemClock.monotonic();
    line.socket.write(requests[line.body] ?? '');
  }

  for (let i = 0; i < connections; i++) {
    const line: Line = { socket: undefined, text: '', sentMs: 0, body: -1 };
    lines.add(line);
    await connect(line);
  }
  const waitMs = (options.startMs ?? 0) - systemClock.now();
  await systemClock.sleep(Math.max(0, waitMs), signal);
  const firstMs = systemClock.monotonic();
  // One that connected late still tells instants from when it was to begin.
  const lateMs = options.startMs === undefined ? 0 : systemClock.now() - options.startMs;
  const endMs = firstMs + 1_000 * seconds;
  let [sent, skipped] = [0, 0];
  for (let nowMs = firstMs; nowMs < endMs && !signal.aborted; nowMs = systemClock.monotonic()) {
    const due = Math.floor(((nowMs - firstMs) / 1_000) * perSecond) - sent - skipped;
    const sendable = Math.min(due, idle.length);
    for (let i = 0; i < sendable; i++) send(sent++);
    skipped += Math.max(0, due - sendable - Math.ceil((perSecond * BEHIND_MS) / 1_000));
    await systemClock.sleep(TURN_MS, signal);
  }
  const lastMs = systemClock.monotonic() + LATE_MS;
  while ([...lines].some(({ body }) => body >= 0) && systemClock.monotonic() < lastMs)
    await systemClock.sleep(TURN_MS, signal);
  over.abort();
  for (const line of lines) {
    if (line.body >= 0) note(line, 'lost');
    line.socket?.terminate();
  }
  // Instants count from the first request, not from the first connection.
  const beforeMs = firstMs - lateMs - startMs;
  return Float32Array.from(numbers, (n, i) => (i % ANSWER_FIELDS === 0 ? n - beforeMs : n));
}

/** Whether a text holds a whole HTTP answer, which has a Content-Length or ends with its last chunk. */
function isWhole(text: string): boolean {
  const head = text.indexOf('\r\n\r\n');
  if (head < 0) return false;
  const [, length] = /\r\ncontent-length: *(\d+)\r\n/i.exec(text) ?? [];
  return length === undefined ? text.endsWith('\r\n0\r\n\r\n') : text.length >= head + 4 + Number(length);
}

const MESSAGES: Readonly<Record<string, Outcome>> = {
  'Credit check unavailable': 'credits-unavailable',
  'No backend available': 'no-backend',
  'Key check unavailable': 'key-unavailable',
};

/** What an answer says. One whose status, code, message and headers do not say the same is strange. */
export function outcomeOf(text: string): Outcome {
  const status = text.slice(9, 12);
  if (status === '200') return text.includes('"result":') ? 'answered' : 'strange';
  if (!text.includes(`"code":-${status},`)) return 'strange';
  const waits = /\r\nretry-after: [1-9]\d*\r\n/i.test(text);
  if (status === '402')
    return !waits && text.includes('"Trial credits used up"') ? 'out-of-credits' : 'strange';
  if (!waits) return 'strange';
  const [, message = ''] = /"message":"([^"]*)"/.exec(text) ?? [];
  if (status === '429') return message.startsWith('Rate limit exceeded') ? 'over-rate' : 'strange';
  return status === '503' ? (MESSAGES[message] ?? 'strange') : 'strange';
}

if (import.meta.main) {
  const end = new AbortController();
  // It ends with whoever started it.
  process.stdin.on('end', () => end.abort()).resume();
  const answers = await offer(JSON.parse(process.argv[2] ?? '{}'), end.signal);
  await Bun.write(Bun.stdout, answers);
  process.exit(0);
}
