import type { Clock } from '../shared/clock.ts';
import { accountCheck, type AccountReader, JsonAccounts, LineAccounts } from './account-reader.ts';
import type { ScanOptions } from './arguments.ts';
import { headersOf, retryAfterOf } from './connection.ts';
import { AFTER_FAILURE_MS } from './load.ts';
import { Recorder } from './recorder.ts';
import type { Figure, Scanned } from './result.ts';
import { printable, withoutUser } from './rpc.ts';

type Parts = Readonly<{
  clock: Clock;
  onProgress: (recorder: Recorder, second: number, share: number) => void;
  signal: AbortSignal;
}>;

/** The result of all scans. */
type ScanRun = Readonly<{
  recorder: Recorder;
  seconds: number;
  figures: readonly Figure[];
  /** The last `SCANS_KEPT` of them. */
  scans: readonly Scanned[];
  /** A sentence for each kind of failure. */
  failures: readonly string[];
}>;

/** Enough for a scan per minute over a day and a half. */
const SCANS_KEPT = 2_000;
const FAILURES_MAX = 50;

/** The id of every scan: each is a request of its own. */
const ID = 1;
const LOOK_MS = 250;

/**
 * Scans programs in turn until the bound, reads each answer to its end and checks every account. Only the current account
 * of an answer is kept. A failed scan does not prevent the next one.
 */
export async function runScans(options: ScanOptions, { clock, onProgress, signal }: Parts): Promise<ScanRun> {
  const { programs, calls = Infinity, seconds = Infinity } = options;
  const recorder = new Recorder('whole scan');
  const startMs = clock.monotonic();
  const second = () => (clock.monotonic() - startMs) / 1_000;
  const scans: Scanned[] = [];
  const failures = new Set<string>();
  const totals = { scans: 0, accounts: 0, wrongAccounts: 0, bytes: 0, complete: 0, cut: 0, refused: 0 };
  const over = new AbortController();
  const ending = AbortSignal.any([signal, over.signal]);
  const watch = (async () => {
    while (!over.signal.aborted) {
      await clock.sleep(2 * LOOK_MS, over.signal);
      if (second() >= seconds) over.abort();
      onProgress(recorder, second(), Math.max(second() / seconds, totals.scans / calls));
    }
  })();
  while (totals.scans < calls && !ending.aborted) {
    const program = programs[totals.scans % programs.length] ?? '';
    const scan = new Scan(program, options, clock, recorder, second);
    const { retryAfter, ...scanned } = await scan.read(ending);
    const { outcome, reason } = scanned;
    add(totals, scanned);
    scans.push(scanned);
    if (scans.length > SCANS_KEPT) scans.shift();
    recorder.count(reason === '' ? outcome : `${outcome}: ${reason}`);
    const isFailure = outcome !== 'complete' && outcome !== 'stopped';
    if (isFailure && failures.size < FAILURES_MAX) failures.add(`${program} ${outcome}: ${reason}`);
    if (!isFailure || totals.scans >= calls) continue;
    const isHeld = retryAfter !== undefined && options.honoursRetryAfter;
    await clock.sleep(isHeld ? 1_000 * retryAfter : AFTER_FAILURE_MS, ending);
  }
  over.abort();
  await watch;
  return {
    recorder,
    seconds: second(),
    scans,
    failures: [...failures],
    figures: figuresOf(totals, second()),
  };
}

type Totals = Record<
  'scans' | 'accounts' | 'wrongAccounts' | 'bytes' | 'complete' | 'cut' | 'refused',
  number
>;

function add(totals: Totals, { accounts, wrongAccounts, bytes, outcome }: Scanned): void {
  totals.scans++;
  totals.accounts += accounts;
  totals.wrongAccounts += wrongAccounts;
  totals.bytes += bytes;
  if (outcome === 'complete' || outcome === 'cut' || outcome === 'refused') totals[outcome]++;
}

function figuresOf(totals: Totals, seconds: number): readonly Figure[] {
  const { accounts, wrongAccounts, bytes, complete, cut, refused } = totals;
  const perSecond = (value: number) => value / Math.max(seconds, 1e-9);
  return [
    { name: 'accounts', value: accounts, unit: '' },
    { name: 'accounts that are wrong', value: wrongAccounts, unit: '', better: 'less' },
    { name: 'read', value: bytes / 1e6, unit: 'MB' },
    { name: 'throughput', value: perSecond(bytes) / 1e6, unit: 'MB/s', better: 'more' },
    { name: 'accounts a second', value: perSecond(accounts), unit: '1/s', better: 'more' },
    { name: 'complete scans', value: complete, unit: '' },
    { name: 'cut scans', value: cut, unit: '', better: 'less' },
    { name: 'refused scans', value: refused, unit: '', better: 'less' },
  ];
}

/** One running scan. A class, because it counts what it reads. */
class Scan {
  readonly #program: string;
  readonly #options: ScanOptions;
  readonly #clock: Clock;
  readonly #recorder: Recorder;
  readonly #second: () => number;
  readonly #check: (account: unknown) => string | undefined;
  readonly #digest: Bun.CryptoHasher | undefined;
  #accounts = 0;
  #wrongAccounts = 0;
  #wrong: string | undefined;
  #bytes = 0;
  #firstByteMs = 0;
  #dataBytes = 0;
  #activeMs: number;

  constructor(program: string, options: ScanOptions, clock: Clock, recorder: Recorder, second: () => number) {
    this.#program = program;
    this.#options = options;
    this.#clock = clock;
    this.#recorder = recorder;
    this.#second = second;
    const check = accountCheck({ program, filters: options.filters, slice: options.slice });
    this.#check = (account) => {
      const space = Number(Object(Object(account).account).space);
      if (space > 0) this.#dataBytes += space;
      return check(account);
    };
    this.#digest = options.sha256 ? new Bun.CryptoHasher('sha256') : undefined;
    this.#activeMs = clock.monotonic();
  }

  /** Sends the request and reads the answer to its end. Never rejects. */
  async read(signal: AbortSignal): Promise<Scanned & { retryAfter: number | undefined }> {
    const startMs = this.#clock.monotonic();
    const silent = new AbortController();
    const done = new AbortController();
    const watch = this.#watch(silent, done.signal);
    const read = await this.#ask(AbortSignal.any([signal, silent.signal])).catch((error: unknown) =>
      this.#failure(error, signal, silent.signal),
    );
    done.abort();
    await watch;
    const tookMs = this.#clock.monotonic() - startMs;
    const isWrong = read.outcome === 'complete' && this.#wrongAccounts > 0;
    const outcome = isWrong ? 'wrong' : read.outcome;
    if (outcome === 'complete') this.#recorder.all.note(tookMs);
    else if (outcome !== 'stopped') this.#recorder.failed(this.#second());
    if (this.#bytes > 0) this.#recorder.timesOf('first byte').note(this.#firstByteMs);
    return {
      program: this.#program,
      outcome,
      reason: isWrong ? `of ${this.#wrongAccounts} accounts, ${this.#wrong}` : printable(read.reason),
      accounts: this.#accounts,
      wrongAccounts: this.#wrongAccounts,
      bytes: this.#bytes,
      seconds: tookMs / 1_000,
      firstByteMs: this.#firstByteMs,
      dataBytes: this.#dataBytes,
      slot: read.slot ?? null,
      // The digest of a partial answer would be meaningless.
      ...(this.#digest !== undefined &&
        read.outcome === 'complete' && { sha256: this.#digest.digest('hex') }),
      retryAfter: read.retryAfter,
    };
  }

  async #ask(signal: AbortSignal): Promise<Read> {
    const { url, ndjson, slice, filters, commitment } = this.#options;
    const config = {
      encoding: 'base64',
      commitment,
      filters,
      ...(slice && { dataSlice: slice }),
      withContext: true,
    };
    const sentMs = this.#clock.monotonic();
    const response = await fetch(withoutUser(url), {
      method: 'POST',
      headers: {
        ...headersOf(this.#options),
        'accept-encoding': 'identity',
        ...(ndjson && { accept: 'application/x-ndjson' }),
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: ID,
        method: 'getProgramAccounts',
        params: [this.#program, config],
      }),
      redirect: 'manual',
      // `#watch` ends a scan without data after `timeoutMs`.
      timeout: false,
      signal,
    });
    const isLines = response.headers.get('content-type')?.includes('ndjson') === true;
    const reader = isLines
      ? new LineAccounts(this.#check, (wrong) => this.#note(wrong))
      : new JsonAccounts(ID, this.#check, (wrong) => this.#note(wrong));
    const text = new TextDecoder('utf-8', { fatal: true });
    for await (const piece of response.body ?? []) {
      this.#activeMs = this.#clock.monotonic();
      if (this.#bytes === 0) this.#firstByteMs = this.#activeMs - sentMs;
      this.#bytes += piece.length;
      this.#digest?.update(piece);
      const before = this.#accounts;
      if (response.status === 200) this.#parse(reader, text, piece);
      this.#recorder.progressed(this.#second(), this.#accounts - before, piece.length);
    }
    const said = response.headers.get('retry-after');
    const retryAfter = retryAfterOf(response.status, said, this.#clock.now());
    if (response.status !== 200) return { outcome: 'refused', reason: `HTTP ${response.status}`, retryAfter };
    if (ndjson && !isLines && reader.end().kind === 'whole')
      return { outcome: 'refused', reason: 'it has no NDJSON', retryAfter };
    const end = reader.end();
    if (end.kind === 'whole') return { outcome: 'complete', reason: '', slot: end.slot };
    if (end.kind === 'refused') return { outcome: 'refused', reason: end.reason, retryAfter };
    return { outcome: 'cut', reason: `it ended as if whole, but ${end.reason}` };
  }

  #parse(reader: AccountReader, text: TextDecoder, piece: Uint8Array): void {
    try {
      reader.push(text.decode(piece, { stream: true }));
    } catch (error) {
      throw new Malformed(error instanceof Error ? error.message : String(error));
    }
  }

  #note(wrong: string | undefined): void {
    this.#accounts++;
    if (wrong === undefined) return;
    this.#wrongAccounts++;
    this.#wrong ??= wrong;
  }

  /** Ends a scan that receives no more data. */
  async #watch(silent: AbortController, done: AbortSignal): Promise<void> {
    while (!done.aborted) {
      await this.#clock.sleep(LOOK_MS, done);
      if (this.#clock.monotonic() - this.#activeMs >= this.#options.timeoutMs) silent.abort();
    }
  }

  #failure(error: unknown, stop: AbortSignal, silent: AbortSignal): Read {
    if (error instanceof Malformed) return { outcome: 'wrong', reason: error.message };
    if (stop.aborted) return { outcome: 'stopped', reason: '' };
    const hasBegun = this.#bytes > 0;
    if (silent.aborted) return { outcome: hasBegun ? 'cut' : 'refused', reason: 'nothing came any more' };
    const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : '';
    return hasBegun
      ? { outcome: 'cut', reason: `the connection broke${code}` }
      : { outcome: 'refused', reason: `no answer${code}` };
  }
}

type Read = Readonly<{
  outcome: Scanned['outcome'];
  reason: string;
  slot?: number | null;
  retryAfter?: number | undefined;
}>;

/** The data is not an answer, regardless of what follows. */
class Malformed extends Error {}
