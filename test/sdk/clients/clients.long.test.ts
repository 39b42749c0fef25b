import { afterAll, describe, expect, test } from 'bun:test';
import { GO, type Language, PYTHON, run, RUST } from './language.ts';
import { startWorld } from './world.ts';

const KEY = 'sluice_secret'; // as probe.py, probe.go and probe.rs give it where it is to be refused
const CREDITS = 1_000;

const world = await startWorld();
const { tiers, troubled } = world;
afterAll(async () => world[Symbol.asyncDispose]());

const python = await runWith(PYTHON);
const sentByPython = world.reached('sendTransaction');
const go = await runWith(GO);
const balancesOfGo = world.reached('getBalance');
const rust = await runWith(RUST);
const scansOfRust = world.reached('getProgramAccounts') - (python.kind === 'ran' ? 1 : 0);

/** Runs a language's example and probe against the world; says why when its client cannot be had here. */
async function runWith(language: Language) {
  const outcome = await run(language, async () => ({
    SLUICE_URL: tiers.url,
    SLUICE_KEY: tiers.key('scale'),
    STUCK_KEY: await world.stuck(),
    TEN_KEY: tiers.key('ten'),
    TEN_KEY_2: tiers.key('ten'),
    TEN_KEY_3: tiers.key('ten'),
    TEN_KEY_4: tiers.key('ten'),
    CLOSED_URL: world.closed,
    TROUBLED_URL: troubled.url.href,
    TROUBLED_KEY: troubled.key('scale'),
    TROUBLED_TRIAL: troubled.key('trial', CREDITS),
    ONE_KEY: tiers.key('one'),
  }));
  if (outcome.kind === 'absent')
    console.log(`${language.name} is not tested here: ${outcome.reason.split('\n').at(-1)}`);
  return outcome;
}

const all = [
  [PYTHON.name, python],
  [GO.name, go],
  [RUST.name, rust],
] as const;

describe.each(all)('%s, unmodified, as docs/sdk.md uses it', (_name, outcome) => {
  const seen = outcome.kind === 'ran' ? outcome.seen : {};
  const there = test.skipIf(outcome.kind === 'absent');

  there('the example pays and confirms by polling, with the key in a header', () => {
    expect(outcome).toMatchObject({ example: 'balance 2000000\n' });
  });
  there('send throws what was refused, and gives the signature when the outcome is unknown', () => {
    expect(seen['send_refused']).toContain('simulation failed');
    expect(String(seen['send_unknown']).toLowerCase()).toBe('true');
  });
  there('what landed may be sent again, and send gives its signature', () => {
    expect(String(seen['sent_again']).toLowerCase()).toBe('true');
  });
  there('confirm ends when the blockhash of what never landed is over', () => {
    expect(seen['expired']).toContain('has expired and will never land');
  });
  there('a search of the whole history for a status is an error that says so', () => {
    expect(seen['history']).toMatch(/-32011|TransactionHistoryNotAvailable/);
  });
});

describe('solana-py', () => {
  const seen = python.kind === 'ran' ? python.seen : {};
  const there = test.skipIf(python.kind === 'absent');

  there('shows the key of a URL in tracebacks and in its log, and none of a header', () => {
    expect(seen['url_refused']).toContain(`for url '${tiers.url}?api-key=${KEY}'`);
    expect(seen['url_log']).toContain(`HTTP Request: POST ${tiers.url}?api-key=${KEY}`);
    expect(seen['url_unreachable']).not.toContain(KEY);
    expect(seen['header_refused']).toContain('401 Unauthorized');
    expect(seen['header_refused']).not.toContain(KEY);
  });
  there('gives up on 429 at once, without its body, and keeps Retry-After in the cause', () => {
    const said = `<class 'httpx2.HTTPStatusError'> raised in "GetSlot" endpoint request`;
    expect(seen['limited']).toEqual([said, expect.stringMatching(/^\d+$/)]);
    expect(seen['patient']).toBeGreaterThan(0);
    expect(seen['dated']).toBe(true);
  });
  there('stays below the rate with rate_limit', () => {
    expect([Number(seen['unlimited']) > 0, seen['limiter']]).toEqual([true, 0]);
  });
  there('gives up after 5 seconds without a byte, which a slow body does not meet', () => {
    expect([seen['default_timeout'], seen['dripped']]).toEqual([5, 0]);
  });
  there('sends a transaction again by itself after its timeout, and both reach a node', () => {
    expect(seen['resent']).toContain('ReadTimeout');
    expect(sentByPython).toBe(1 + 2); // the probe's own send, then the two
  });
  there('waits by polling itself, and gives a failed transaction as if it were none', () => {
    expect(seen['own_wait_of_failed']).toContain('InstructionErrorCustom(1)');
    expect(seen['confirm_failed']).toContain('failed: ');
  });
});

describe('solana-go', () => {
  const seen = go.kind === 'ran' ? go.seen : {};
  const there = test.skipIf(go.kind === 'absent');

  there('shows the key of a URL when the endpoint cannot be reached, and none of a header', () => {
    expect(seen['url_unreachable']).toContain(`Post "${world.closed}?api-key=${KEY}"`);
    expect(seen['url_refused']).toContain('Invalid or inactive API key');
    expect(seen['url_refused']).not.toContain(KEY);
    expect(seen['header_unreachable']).toContain('connection refused');
    expect(seen['header_unreachable']).not.toContain(KEY);
  });
  there('gives up on 429 at once with the code and the message; the transport of the example waits', () => {
    expect(seen['limited']).toEqual([true, -429, 'Rate limit exceeded']);
    expect(seen['patient']).toBe('');
  });
  there(
    'takes a 4xx without an error of the method as not sent, and reads a Retry-After that is a date',
    () => {
      expect([seen['send_forbidden'], seen['dated']]).toEqual([expect.stringContaining('403'), true]);
    },
  );
  there('stays below the rate with NewWithRateLimit, with NewWithLimiter and with the example', () => {
    expect(Number(seen['unlimited'])).toBeGreaterThan(0);
    expect([seen['rate_limit'], seen['limiter'], seen['example_limiter']]).toEqual([0, 0, 0]);
  });
  there('ends a call with its context, and does not send it again', () => {
    expect(seen['context_deadline']).toContain('context deadline exceeded');
    expect(balancesOfGo).toBe(1);
  });
  there('has a wait of its own for WebSocket alone', () => {
    expect(seen['own_wait']).toContain('bad handshake, status: 405 Method Not Allowed');
  });
});

describe('solana-rpc-client', () => {
  const seen = rust.kind === 'ran' ? rust.seen : {};
  const there = test.skipIf(rust.kind === 'absent');

  there('shows the key of a URL in every transport error, and none of a header', () => {
    expect(seen['url_refused']).toContain(`for url (${tiers.url}?api-key=${KEY})`);
    expect(seen['url_unreachable']).toContain(`for url (${world.closed}?api-key=${KEY})`);
    expect(seen['header_refused']).toContain('401 Unauthorized');
    expect(seen['header_refused']).not.toContain(KEY);
  });
  there('waits as long as Retry-After says and sends again', () => {
    expect(seen['limited']).toBe('');
    expect(Number(seen['limited_ms'])).toBeGreaterThan(900);
  });
  there('ends a call when its time is over although bytes keep coming, and does not send it again', () => {
    expect(seen['dripped']).not.toBe('');
    expect(scansOfRust).toBe(1);
    expect(seen['default_timeout_s'] ?? '30').toBe('30');
  });
  there('waits by polling itself', () => expect(seen['own_wait']).toBe(''));
});
