/*
 * Holds a gateway against a node of its own: every call of `questions.ts`, sent to the node alone and through the gateway,
 * has to be answered by the same bytes.
 *
 *   bun test/agave/compare.ts --node http://127.0.0.1:8899 --gateway http://127.0.0.1:8900 --key sluice_…
 *   bun test/agave/compare.ts --node http://127.0.0.1:8899 --record test/fixtures/agave/3.1.8.ndjson
 *
 * The node must give airdrops, as a test validator does; nothing else is sent to it than what `scene.ts` says.
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { type Exchange, RECORDED_ID } from './exchanges.ts';
import { bodyOf, type Question, questionsFor } from './questions.ts';
import { setScene } from './scene.ts';
import { masked } from './shape.ts';

/** What moves between two looks at a node is looked at again, so often at most. */
const TRIES_MAX = 12;
/** Longer answers, the schedule of leaders alone, say no more than their first bytes. */
const RECORDED_BYTES_MAX = 65_536;

/** How an answer through the gateway differs from the node's; docs/spec.md says why. */
const BY_RULE: Readonly<Record<string, string>> = {
  getSignatureStatuses: 'an unknown signature with searchTransactionHistory is -32011 (2.3)',
  getHealth: "the pool's health (2.3)",
  getFirstAvailableBlock: "the pool's floor (2.3)",
  minimumLedgerSlot: "the pool's floor (2.3)",
  getNothing: '-32601 is refused with a sentence of its own (2.5)',
  getConfirmedBlock: '-32601 is refused with a sentence of its own (2.5)',
};

async function ask(url: string, body: string, key?: string): Promise<Omit<Exchange, 'name'>> {
  const headers = { 'content-type': 'application/json', ...(key === undefined ? {} : { 'x-token': key }) };
  const response = await fetch(url, { method: 'POST', body, headers, signal: AbortSignal.timeout(60_000) });
  const contentType = response.headers.get('content-type');
  return { request: body, status: response.status, contentType, answer: await response.text() };
}

type Compared = Readonly<{ kind: 'same' | 'moving' | 'other'; alone: string; through: string }>;

/** Looks at the node, the gateway and the node again, until what the gateway gives is what the node gave before or after. */
async function compare(question: Question, node: string, gateway: string, key?: string): Promise<Compared> {
  const body = bodyOf(question, RECORDED_ID);
  const print = ({ status, contentType, answer }: Omit<Exchange, 'name'>) =>
    `${status} ${contentType} ${answer}`;
  let [alone, through] = [print(await ask(node, body)), ''];
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    through = print(await ask(gateway, body, key));
    const after = print(await ask(node, body));
    if (through === alone || through === after) return { kind: 'same', alone, through };
    alone = after;
  }
  return { kind: masked(alone) === masked(through) ? 'moving' : 'other', alone, through };
}

const values = import.meta.main
  ? parseArgs({
      options: {
        node: { type: 'string' },
        gateway: { type: 'string' },
        key: { type: 'string' },
        record: { type: 'string' },
      },
    }).values
  : undefined;
if (values !== undefined) {
  const { node, gateway, key, record } = values;
  if (node === undefined || (gateway === undefined && record === undefined)) {
    console.error('Give --node URL, and --gateway URL [--key KEY] or --record FILE.');
    process.exit(2);
  }
  const questions = questionsFor(await setScene(node));
  if (record !== undefined) {
    const lines: string[] = [];
    for (const question of questions) {
      const exchange = await ask(node, bodyOf(question, RECORDED_ID));
      if (exchange.answer.length > RECORDED_BYTES_MAX) console.log(`${question.name} is too long to record.`);
      else lines.push(JSON.stringify({ name: question.name, ...exchange }));
    }
    writeFileSync(record, `${lines.join('\n')}\n`);
    console.log(`${lines.length} exchanges recorded.`);
  }
  if (gateway !== undefined) process.exitCode = await report(questions, node, gateway, key);
}

async function report(questions: readonly Question[], node: string, gateway: string, key?: string) {
  const counts = { same: 0, moving: 0, other: 0, byRule: 0 };
  for (const question of questions) {
    const compared = await compare(question, node, gateway, key);
    const reason = compared.kind === 'other' ? BY_RULE[question.method] : undefined;
    counts[reason === undefined ? compared.kind : 'byRule']++;
    if (compared.kind !== 'other') continue;
    console.log(`${question.name}: ${reason ?? 'NOT THE SAME'}`);
    console.log(`  params   ${(question.params ?? '').slice(0, 200)}`);
    console.log(`  node     ${compared.alone.slice(0, 400).trimEnd()}`);
    console.log(`  gateway  ${compared.through.slice(0, 400).trimEnd()}`);
  }
  console.log(
    `${counts.same} the same to the byte, ${counts.moving} the same but for what moves, ` +
      `${counts.byRule} different by a rule of docs/spec.md, ${counts.other} not the same`,
  );
  return counts.other === 0 ? 0 : 1;
}
