import { clientOf, REQUEST } from './of.ts';

/** Sends one request to the address in the arguments and prints how it ended, and its body; a process of its own, because authorities are read as it starts. */
const client = clientOf(process.argv[2] ?? '');
const outcome = await client.send({ ...REQUEST, dueMs: 3_000 }, new AbortController().signal);
if (outcome.kind === 'reply') {
  const end = await outcome.body.pipe(() => undefined);
  console.log(`reply ${outcome.head.status}, ${end.kind} after ${end.bytes} bytes`);
} else console.log(`${outcome.kind}: ${outcome.reason}`);
process.exit(0);
