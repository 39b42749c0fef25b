import { expect, test } from 'bun:test';
import { wrongAnswers } from '../../../../bench/self/compare/checks.ts';
import type { Subject } from '../../../../bench/self/compare/peers.ts';

type Call = Readonly<{ id: unknown; method: string; params: readonly unknown[] }>;
/** What a planted fault does to a right answer. */
type Fault = 'none' | 'same id' | 'unordered' | 'cut' | 'free for all' | 'no rate' | 'no credits';

const KEYS = { paid: 'paid', slow: 'slow', spent: 'spent' };

function serve(fault: Fault) {
  let slow = 0;
  return Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const key = request.headers.get('x-token') ?? '';
      if (!Object.keys(KEYS).includes(key) && fault !== 'free for all')
        return new Response('', { status: 401 });
      if (key === 'slow' && slow++ > 0 && fault !== 'no rate') return new Response('', { status: 429 });
      if (key === 'spent' && fault !== 'no credits') return new Response('', { status: 402 });
      const body: unknown = await request.json();
      if (!Array.isArray(body)) return answer(body as Call, fault); // what checks.ts sends
      const answers = body.map((call: Call) => valueOf(call, fault));
      return Response.json(fault === 'unordered' ? answers.toReversed() : answers);
    },
  });
}

function answer(call: Call, fault: Fault): Response {
  const text = JSON.stringify(valueOf(call, fault));
  return new Response(fault === 'cut' && call.method === 'getProgramAccounts' ? text.slice(1) : text);
}

function valueOf({ id, params }: Call, fault: Fault) {
  return { id: fault === 'same id' ? 1 : id, result: { value: { lamports: String(params[0]).length } } };
}

async function wrongWith(fault: Fault, checks: Subject['checks'] = 'keys and credits') {
  using direct = serve('none');
  using served = serve(fault);
  const subject: Subject = {
    name: 'x',
    version: '',
    checks,
    lacks: '',
    start: () => Promise.reject(new Error()),
  };
  return await wrongAnswers(subject, { port: served.port ?? 0 }, direct.port ?? 0, KEYS);
}

test('right answers are not complained about', async () => expect(await wrongWith('none')).toEqual([]));

test.each([
  ['same id', 'getAccountInfo'],
  ['unordered', 'a batch'],
  ['cut', 'a scan'],
  ['free for all', 'unknown key'],
  ['no rate', 'above the rate'],
  ['no credits', 'without credits'],
] satisfies [Fault, string][])('%s is found', async (fault, part) => {
  expect((await wrongWith(fault)).join()).toContain(part);
});

test('what a subject does not claim to check is not checked', async () => {
  expect(await wrongWith('no credits', 'keys')).toEqual([]);
  expect(await wrongWith('free for all', 'nothing')).toEqual([]);
});
