import { systemClock } from '../../shared/clock.ts';
import { keyAt } from './many-keys.ts';
import { isWhole } from './offer.ts';

/**
 * What a run is told, as JSON in its only argument: keys from 1 to `keys`, each called for once, or, with `seconds`,
 * over and over in that time. `perSecond` is the pace of all connections together; absent: as fast as they can.
 */
export type Touching = Readonly<{
  url: string;
  keys: number;
  connections: number;
  seconds?: number;
  perSecond?: number;
}>;

/** What it prints: answers by their HTTP status, and how long it took. */
export type Touched = Readonly<{ statuses: Readonly<Record<string, number>>; seconds: number }>;

/** A method that no backend serves: the gateway answers it itself, with everything that it does for a key. */
const BODY = '{"jsonrpc":"2.0","id":1,"method":"nobodyServesThis"}';

/** Calls on kept-alive connections, one call at a time on each. */
async function touch({ url, keys, connections, seconds, perSecond }: Touching): Promise<Touched> {
  const { host, hostname, port } = new URL(url);
  const statuses: Record<string, number> = {};
  const startMs = systemClock.monotonic();
  const never = new AbortController().signal;
  let next = 0;

  function request(): string | undefined {
    const at = next++;
    if (seconds === undefined ? at >= keys : systemClock.monotonic() - startMs >= seconds * 1_000)
      return undefined;
    const key = keyAt((at % keys) + 1);
    return (
      `POST / HTTP/1.1\r\nhost: ${host}\r\nx-token: ${key}\r\ncontent-type: application/json\r\n` +
      `content-length: ${BODY.length}\r\n\r\n${BODY}`
    );
  }

  async function converse(): Promise<void> {
    const over = Promise.withResolvers<void>();
    let text = '';
    const socket = await Bun.connect({
      hostname,
      port: Number(port),
      socket: {
        data(_, bytes) {
          text += bytes.toString('latin1');
          if (!isWhole(text)) return;
          const status = text.slice(9, 12);
          statuses[status] = (statuses[status] ?? 0) + 1;
          text = '';
          void send();
        },
        close: () => over.resolve(),
        error: () => over.resolve(),
      },
    });
    async function send(): Promise<void> {
      if (perSecond !== undefined) {
        const waitMs = startMs + (next / perSecond) * 1_000 - systemClock.monotonic();
        if (waitMs > 1) await systemClock.sleep(waitMs, never);
      }
      const words = request();
      if (words === undefined) socket.end();
      else socket.write(words);
    }
    void send();
    await over.promise;
  }

  await Promise.all(Array.from({ length: connections }, converse));
  return { statuses, seconds: (systemClock.monotonic() - startMs) / 1_000 };
}

if (import.meta.main) {
  const touching: Touching = JSON.parse(process.argv[2] ?? '{}');
  console.log(JSON.stringify(await touch(touching)));
  process.exit(0);
}
