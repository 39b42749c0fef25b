import Assembler from 'stream-json/core/assembler.js';
import { jsonParser } from 'stream-json/core/parser.js';

const { SLUICE_URL: url = 'http://127.0.0.1:8899', SLUICE_KEY: key = '' } = process.env;
const { PROGRAM: program = 'BPFLoaderUpgradeab1e11111111111111111111111' } = process.env;
/** Set: an account a line, with a closing line. Only this service has that; JSON is the same everywhere. */
const { NDJSON } = process.env;

/** What is asked for, by which each account is judged: programs of the loader, whose accounts begin with `2`. */
const slice = { offset: 0, length: 36 };
const start = { offset: 0, bytes: Buffer.from([2, 0, 0, 0]) };

/** Asks for a program's accounts and gives each as it comes. Throws when that was not all, so count on none before it ends. */
async function* scan(): AsyncGenerator<unknown> {
  const filters = [
    { memcmp: { offset: start.offset, bytes: start.bytes.toString('base64'), encoding: 'base64' } },
  ];
  const params = [program, { encoding: 'base64', dataSlice: slice, filters }];
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-token': key,
      ...(NDJSON && { accept: 'application/x-ndjson' }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'getProgramAccounts', params }),
  });
  if (!response.ok || response.body === null)
    throw new Error(`HTTP ${response.status}: ${await response.text()}`);
  const isLines = response.headers.get('content-type')?.includes('ndjson') === true;
  yield* isLines ? accountsOfLines(textOf(response.body)) : accountsOfJson(textOf(response.body));
}

/** A connection that is cut throws here. */
async function* textOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  for await (const piece of body) yield decoder.decode(piece, { stream: true });
}

/** The accounts in `result`. Each is taken out of it when it is complete: memory does not grow with the answer. */
async function* accountsOfJson(text: AsyncIterable<string>): AsyncGenerator<unknown> {
  const parse = jsonParser({ packValues: true, streamValues: false });
  const answer = new Assembler();
  for await (const piece of text) {
    const tokens = parse(piece);
    if (typeof tokens !== 'object' || tokens === null || !('values' in tokens)) continue;
    for (const token of tokens.values) {
      answer.consume(token);
      if (answer.depth === 2 && Array.isArray(answer.current)) yield* answer.current.splice(0);
    }
  }
  if (!answer.done) throw new Error('the answer is not complete');
  const { error, result } = Object(answer.current);
  if (!Array.isArray(result)) throw new Error(`no accounts: ${JSON.stringify(error)}`);
}

/** The accounts of lines. The last line counts them: without it, lines are missing. */
async function* accountsOfLines(text: AsyncIterable<string>): AsyncGenerator<unknown> {
  let rest = '';
  let accounts = 0;
  let closing: unknown;
  for await (const piece of text) {
    const lines = (rest + piece).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (closing !== undefined) throw new Error('a line follows the closing one');
      const value = JSON.parse(line);
      if ('pubkey' in value) {
        accounts++;
        yield value;
      } else closing = value.accounts;
    }
  }
  if (rest !== '' || closing !== accounts)
    throw new Error(`the closing line is missing after ${accounts} accounts`);
}

/** What is wrong with an account, if anything is. */
function faultOf(found: unknown): string | undefined {
  const { pubkey, account } = Object(found);
  const { data, owner, space } = Object(account);
  if (typeof pubkey !== 'string' || !/^[1-9A-HJ-NP-Za-km-z]{32,44}$/.test(pubkey))
    return 'its address is none';
  if (owner !== program) return 'another program owns it';
  const [text, encoding] = Array.isArray(data) ? data : [];
  const bytes = Buffer.from(String(text), 'base64');
  if (encoding !== 'base64' || bytes.toString('base64') !== text) return 'its data is not base64';
  const length = Math.min(slice.length, Math.max(0, Number(space) - slice.offset));
  if (bytes.length !== length) return `its data has ${bytes.length} bytes instead of ${length}`;
  const at = start.offset - slice.offset;
  return start.bytes.equals(bytes.subarray(at, at + start.bytes.length))
    ? undefined
    : 'it does not match the filter';
}

let accounts = 0;
for await (const found of scan()) {
  const fault = faultOf(found);
  if (fault !== undefined) throw new Error(`${JSON.stringify(found)}: ${fault}`);
  accounts++;
}
console.log('accounts', accounts);
