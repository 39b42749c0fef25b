import { createHttpClient } from '../../../gateway/upstream/http-client.ts';
import { systemClock } from '../../../shared/clock.ts';

/** Sends one request to the address in the arguments and prints how it ended, and its body; a process of its own, because authorities are read as it starts. */
const client = createHttpClient({
  url: new URL(process.argv[2] ?? ''),
  headers: new Map(),
  clock: systemClock,
  idleMs: 10_000,
});
const request = { body: Buffer.from('{}'), acceptEncoding: 'identity', dueMs: 3_000, kind: 'light' } as const;
const outcome = await client.send(request, new AbortController().signal);
if (outcome.kind === 'reply') {
  const end = await outcome.body.pipe(() => undefined);
  console.log(`reply ${outcome.head.status}, ${end.kind} after ${end.bytes} bytes`);
} else console.log(`${outcome.kind}: ${outcome.reason}`);
process.exit(0);
