import type { Reply } from '../upstream/forward.ts';
import { readAll } from '../upstream/probe.ts';
import { rpcError } from '../respond/refusal.ts';
import { joined } from './slices.ts';

/** No page of 1,000 signatures and no list of 500,000 slots is longer. */
const READ_BYTES_MAX = 8_388_608;

/** Agave's own words (`custom_error.rs`). */
const STORAGE_UNREACHABLE = -32019;
const STORAGE_REASON = 'Failed to query long-term storage; please try again';

/** What is said when the archive cannot answer and the live nodes' answer alone would read as the end of history. */
export function storageUnreachable(id: Uint8Array): Reply {
  return wholeOf(rpcError(STORAGE_UNREACHABLE, STORAGE_REASON, id));
}

/** `{"jsonrpc":"2.0","result":RESULT,"id":ID}` of the result's pieces, the id verbatim. */
export function resultAnswer(result: readonly (string | Uint8Array)[], id: Uint8Array): Reply {
  return wholeOf(joined(['{"jsonrpc":"2.0","result":', ...result, ',"id":', id, '}']));
}

/** Bytes of ours as an answer that is there at once, uncompressed. */
export function wholeOf(bytes: Uint8Array<ArrayBuffer>): Extract<Reply, { kind: 'whole' }> {
  return { kind: 'whole', bytes, encoding: undefined };
}

/** The reply with a stream read to its end; one that breaks off or has no end in sight is no answer. */
export async function readWhole(reply: Reply): Promise<Exclude<Reply, { kind: 'stream' }>> {
  if (reply.kind !== 'stream') return reply;
  const read = await readAll(reply.body, READ_BYTES_MAX);
  return read.kind === 'all' ? wholeOf(read.bytes) : { kind: 'no-backend' };
}
