import { systemClock } from '../shared/clock.ts';
import { percentile } from './statistics.ts';

/** What a run of the load generator is told, as JSON in its only argument. `pauseMs` is between two calls of a connection. */
export type Load = Readonly<{
  url: string;
  key: string;
  connections: number;
  seconds: number;
  pauseMs: number;
}>;

/** What it prints: calls answered with 200, other answers, and times from the call to its whole answer. */
export type Called = Readonly<{ calls: number; errors: number; p50Ms: number; p99Ms: number }>;

const BODY = '{"jsonrpc":"2.0","id":1,"method":"getSlot"}';

/** Calls getSlot over kept-alive connections, one call at a time on each. */
async function call({ url, key, connections, seconds, pauseMs }: Load): Promise<Called> {
  const { host, hostname, port } = new URL(url);
  const request = Buffer.from(
    `POST / HTTP/1.1\r\nhost: ${host}\r\nx-token: ${key}\r\ncontent-type: application/json\r\n` +
      `content-length: ${BODY.length}\r\n\r\n${BODY}`,
  );
  const timesMs: number[] = [];
  const pause = AbortSignal.timeout(1_000 * seconds);
  let errors = 0;

  async function converse() {
    const over = Promise.withResolvers<void>();
    let text = '';
    let sentMs = 0;
    const socket = await Bun.connect({
      hostname,
      port: Number(port),
      socket: {
        async data(self, bytes) {
          text += bytes.toString('latin1');
          if (!isWhole(text)) return;
          timesMs.push(systemClock.monotonic() - sentMs);
          if (!text.startsWith('HTTP/1.1 200')) errors++;
          text = '';
          if (pauseMs > 0) await systemClock.sleep(pauseMs, pause);
          if (pause.aborted) self.end();
          else send();
        },
        close: () => over.resolve(),
        error: () => over.resolve(),
      },
    });
    function send() {
      sentMs = systemClock.monotonic();
      socket.write(request);
    }
    pause.addEventListener('abort', () => socket.end(), { once: true });
    send();
    await over.promise;
  }

  await Promise.all(Array.from({ length: connections }, converse));
  return {
    calls: timesMs.length - errors,
    errors,
    p50Ms: percentile(timesMs, 0.5),
    p99Ms: percentile(timesMs, 0.99),
  };
}

/** Whether `text` holds a whole HTTP answer with a Content-Length. */
export function isWhole(text: string): boolean {
  const head = text.indexOf('\r\n\r\n');
  const [, length] = /\r\ncontent-length: *(\d+)\r\n/i.exec(text) ?? [];
  return head >= 0 && length !== undefined && text.length >= head + 4 + Number(length);
}

if (import.meta.main) {
  const load: Load = JSON.parse(process.argv[2] ?? '{}');
  console.log(JSON.stringify(await call(load)));
  process.exit(0);
}
