/** Far more than a password may have; what comes after is not read. */
const BYTES_MAX = 4_096;

/** The first line of `stream`, without its end. */
export async function firstLine(stream: ReadableStream<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    chunks.push(chunk);
    bytes += chunk.byteLength;
    if (chunk.includes(NEWLINE) || bytes > BYTES_MAX) break;
  }
  const [line = ''] = Buffer.concat(chunks).toString('utf8').split('\n', 1);
  return line.replace(/\r$/, '');
}

const NEWLINE = 0x0a;
