import { createHash } from 'node:crypto';
import type { Running, Subject } from './peers.ts';

/** The keys to check with, one of each plan. */
export type CheckKeys = Readonly<{ paid: string; slow: string; spent: string }>;

const SCAN_BYTES = 3_000_000;
const UNKNOWN_KEY = 'sluice_0000000000000000000000000000000000000000';

/**
 * Compares what a subject answers with what the backend itself answers at `direct`; gives every difference in a
 * sentence. A subject that has one is not timed: a wrong answer can be as quick as it likes.
 */
export async function wrongAnswers(
  subject: Subject,
  running: Pick<Running, 'port'>,
  direct: number,
  keys: CheckKeys,
): Promise<readonly string[]> {
  const wrong: string[] = [];
  const expect = (what: string, seen: unknown, wanted: unknown) => {
    if (JSON.stringify(seen) !== JSON.stringify(wanted)) {
      wrong.push(`${what}: ${JSON.stringify(seen)} instead of ${JSON.stringify(wanted)}`);
    }
  };
  const ask = (body: unknown, key = keys.paid) => post(running.port, body, key);

  const accounts = ['11111111111111111111111111111111', 'Vote111111111111111111111111111111111111111'];
  const calls = accounts.map((account, i) => callOf(i === 0 ? 'one' : 2, 'getAccountInfo', [account]));
  const answers = await Promise.all(calls.map((call) => ask(call)));
  const right = await Promise.all(calls.map((call) => post(direct, call, keys.paid)));
  for (const [i, answer] of answers.entries()) {
    expect('getAccountInfo', essenceOf(answer.text), essenceOf(right[i]?.text ?? ''));
    expect('the status of getAccountInfo', answer.status, 200);
  }
  const batch = [...calls, callOf(3, 'getAccountInfo', [accounts[0]])];
  expect(
    'a batch',
    essenceOf((await ask(batch)).text),
    essenceOf((await post(direct, batch, keys.paid)).text),
  );
  for (const framing of ['length', 'chunked']) {
    const scan = callOf(4, 'getProgramAccounts', ['x', { bytes: SCAN_BYTES, framing }]);
    expect(`a scan (${framing})`, digest(await ask(scan)), digest(await post(direct, scan, keys.paid)));
  }
  if (subject.checks === 'nothing') return wrong;

  expect('the status for an unknown key', (await ask(calls[0], UNKNOWN_KEY)).status, 401);
  const slow = await Promise.all(Array.from({ length: 6 }, () => ask(calls[0], keys.slow)));
  expect('statuses above the rate', [...new Set(slow.map(({ status }) => status))].toSorted(), [200, 429]);
  if (subject.checks === 'keys') return wrong;
  expect('the status without credits', (await ask(calls[0], keys.spent)).status, 402);
  return wrong;
}

/** What of an answer is the same at every instant: ids, in order, and which accounts were answered. */
function essenceOf(text: string): unknown {
  try {
    const answer: unknown = JSON.parse(text);
    return (Array.isArray(answer) ? answer : [answer]).map((one) => [one.id, one.result?.value?.lamports]);
  } catch {
    return text.slice(0, 200);
  }
}

function digest({ status, text }: Readonly<{ status: number; text: string }>): string {
  return `${status}, ${text.length} bytes, ${createHash('sha256').update(text).digest('hex').slice(0, 8)}`;
}

function callOf(id: string | number, method: string, params: readonly unknown[]) {
  return { jsonrpc: '2.0', id, method, params };
}

async function post(port: number, body: unknown, key: string) {
  const headers = { 'content-type': 'application/json', 'x-token': key };
  const response = await fetch(`http://127.0.0.1:${port}/`, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  });
  return { status: response.status, text: await response.text() };
}
