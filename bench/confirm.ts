import { getTransferSolInstruction } from '@solana-program/system';
import {
  appendTransactionMessageInstruction,
  blockhash as toBlockhash,
  isBlockhash,
  createTransactionMessage,
  getBase64EncodedWireTransaction,
  getSignatureFromTransaction,
  type KeyPairSigner,
  pipe,
  setTransactionMessageFeePayerSigner,
  setTransactionMessageLifetimeUsingBlockhash,
  signTransactionMessageWithSigners,
} from '@solana/kit';
import type { Clock } from '../shared/clock.ts';
import type { ConfirmOptions } from './arguments.ts';
import { RETRY_AFTER_MAX } from './connection.ts';
import { AFTER_FAILURE_MS } from './load.ts';
import { Recorder } from './recorder.ts';
import type { Figure } from './result.ts';
import type { Answered, Rpc } from './rpc.ts';

type Parts = Readonly<{
  clock: Clock;
  rpc: Rpc;
  payer: KeyPairSigner;
  /** Whether the payer is new and needs an airdrop. */
  isNew: boolean;
  onProgress: (recorder: Recorder, second: number, share: number) => void;
  signal: AbortSignal;
}>;

/** What transfers came to. `failure`: why none was sent. */
type ConfirmRun = Readonly<{
  recorder: Recorder;
  seconds: number;
  figures: readonly Figure[];
  failure: string | undefined;
}>;

type Status = Readonly<{ confirmationStatus?: string; err: unknown }> | null;
type Blockhash = Readonly<{ value: Readonly<{ blockhash: string; lastValidBlockHeight: number }> }>;

/** A transfer whose end is not known. */
type Pending = {
  readonly signature: string;
  readonly fromMs: number;
  readonly lastValidBlockHeight: number;
  readonly settle: (outcome: string) => void;
  /** How many of `COMMITMENTS` it has reached. */
  reached: number;
  /** Its blockhash was too old at the last look: one more, and it has expired. */
  isOverdue: boolean;
};

const COMMITMENTS = ['processed', 'confirmed', 'finalized'] as const;
/** More signatures than that are refused in one call (Agave's `MAX_GET_SIGNATURE_STATUSES_QUERY_ITEMS`). */
const STATUSES_MAX = 256;
const AIRDROP_LAMPORTS = 1_000_000_000;
/** A blockhash is good for about a minute; a new one now and then leaves each transfer most of that. */
const BLOCKHASH_MS = 5_000;
const RETRY_MS = 500;
/** What is on the chain is final long before so many blocks came after the last one of its blockhash. */
const LATE_BLOCKS = 150;

const isAnything = (value: unknown): value is unknown => value !== undefined;
const isHeight = (value: unknown): value is number => Number.isSafeInteger(value);
const isBalance = (value: unknown): value is { value: number } => Number.isInteger(Object(value).value);
function isLatestBlockhash(value: unknown): value is Blockhash {
  const { blockhash, lastValidBlockHeight } = Object(Object(value).value);
  return typeof blockhash === 'string' && isBlockhash(blockhash) && isHeight(lastValidBlockHeight);
}
function areStatuses(value: unknown): value is { value: readonly Status[] } {
  return Array.isArray(Object(value).value);
}

/**
 * Sends transfers of the payer to itself and polls for their statuses until each has the wanted commitment, or its
 * blockhash is too old. A transfer is signed and sent once: what may have been sent is waited for, and never made anew.
 */
export async function runConfirm(options: ConfirmOptions, parts: Parts): Promise<ConfirmRun> {
  const run = new Transfers(options, parts);
  const failure = parts.isNew ? await run.fund() : undefined;
  if (failure === undefined) await run.sendAll();
  return { recorder: run.recorder, seconds: run.second(), figures: run.figures(), failure };
}

class Transfers {
  /** From sending to the last commitment that was waited for. */
  readonly recorder: Recorder;
  readonly #options: ConfirmOptions;
  readonly #parts: Parts;
  readonly #pending = new Map<string, Pending>();
  #startMs: number;
  #begun = 0;
  #polls = 0;
  #blockhash: Blockhash['value'] | undefined;
  #blockhashMs = -Infinity;
  #heldUntilMs = 0;

  constructor(options: ConfirmOptions, parts: Parts) {
    this.#options = options;
    this.#parts = parts;
    this.recorder = new Recorder(options.until);
    this.#startMs = parts.clock.monotonic();
  }

  second(): number {
    return (this.#parts.clock.monotonic() - this.#startMs) / 1_000;
  }

  figures(): readonly Figure[] {
    const { answers } = this.recorder;
    return [
      { name: 'transfers begun', value: this.#begun, unit: '' },
      { name: `transfers ${this.#options.until}`, value: answers, unit: '', better: 'more' },
      { name: 'rate', value: answers / Math.max(this.second(), 1e-9), unit: '1/s', better: 'more' },
      { name: 'polls of statuses', value: this.#polls, unit: '' },
    ];
  }

  /** Has the payer's account filled by the cluster; gives why that failed, unless it was stopped. */
  async fund(): Promise<string | undefined> {
    const { payer, rpc, clock, signal } = this.#parts;
    const airdrop = await this.#withRetries(() =>
      rpc('requestAirdrop', [payer.address, AIRDROP_LAMPORTS], isAnything),
    );
    if (signal.aborted) return undefined;
    if (airdrop.kind !== 'result')
      return `no airdrop: ${airdrop.kind === 'refused' ? airdrop.sentence : airdrop.reason}; --keypair FILE names a funded key`;
    const endMs = clock.monotonic() + this.#options.timeoutMs;
    while (clock.monotonic() < endMs && this.#heldUntilMs < this.#endMs() && !signal.aborted) {
      const params = [payer.address, { commitment: 'confirmed' }];
      const balance = await this.#withRetries(() => rpc('getBalance', params, isBalance));
      if (balance.kind === 'result' && balance.result.value > 0) {
        this.#startMs = clock.monotonic();
        return undefined;
      }
      await clock.sleep(this.#options.pollMs, signal);
    }
    return signal.aborted ? undefined : 'the airdrop did not arrive';
  }

  async sendAll(): Promise<void> {
    const over = new AbortController();
    const polling = this.#poll(over.signal);
    await Promise.all(Array.from({ length: this.#options.connections }, () => this.#sendInTurn()));
    over.abort();
    await polling;
  }

  /** One transfer after the other, each to its end. With a rate, a transfer counts from when it was due. */
  async #sendInTurn(): Promise<void> {
    const { clock, signal } = this.#parts;
    const { calls = Infinity, perSecond } = this.#options;
    const latestMs = this.#endMs();
    while (this.#begun < calls && clock.monotonic() < latestMs && !signal.aborted) {
      const n = this.#begun++;
      const dueMs = perSecond === undefined ? clock.monotonic() : this.#startMs + (1_000 * n) / perSecond;
      await clock.sleep(Math.min(dueMs, latestMs) - clock.monotonic(), signal);
      await this.#untilHeld();
      if (clock.monotonic() >= latestMs || signal.aborted) {
        this.#begun--;
        return;
      }
      const outcome = await this.#transfer(n, dueMs);
      if (signal.aborted && outcome === 'stopped') return;
      this.recorder.count(outcome);
      if (outcome === this.#options.until) continue;
      this.recorder.failed(this.second());
      await clock.sleep(AFTER_FAILURE_MS, signal);
    }
  }

  /** Sends transfer `n`; gives what came of it. */
  async #transfer(n: number, fromMs: number): Promise<string> {
    const { clock, rpc, payer, signal } = this.#parts;
    const blockhash = await this.#freshBlockhash();
    if (typeof blockhash === 'string') return blockhash;
    const transaction = await pipe(
      createTransactionMessage({ version: 0 }),
      (message) => setTransactionMessageFeePayerSigner(payer, message),
      (message) =>
        setTransactionMessageLifetimeUsingBlockhash(
          {
            blockhash: toBlockhash(blockhash.blockhash),
            lastValidBlockHeight: BigInt(blockhash.lastValidBlockHeight),
          },
          message,
        ),
      // Another amount each: two equal transactions would be one.
      (message) =>
        appendTransactionMessageInstruction(
          getTransferSolInstruction({ source: payer, destination: payer.address, amount: BigInt(n + 1) }),
          message,
        ),
      (message) => signTransactionMessageWithSigners(message),
    );
    const signature = getSignatureFromTransaction(transaction);
    const wire = getBase64EncodedWireTransaction(transaction);
    const sentMs = clock.monotonic();
    const config = { encoding: 'base64', preflightCommitment: 'confirmed' };
    const { promise, resolve } = Promise.withResolvers<string>();
    const { lastValidBlockHeight } = blockhash;
    const sent = await rpc('sendTransaction', [wire, config], isAnything);
    if (sent.kind === 'refused') {
      this.#hold(sent);
      return sent.outcome;
    }
    if (sent.kind === 'result') this.recorder.timesOf('accepted').note(clock.monotonic() - sentMs);
    // Without an answer it may have been sent all the same.
    else this.recorder.count(`sendTransaction: ${sent.reason}`);
    // The polls end with `signal`, and with them whoever waits for one.
    if (signal.aborted) return 'stopped';
    this.#pending.set(signature, {
      signature,
      fromMs,
      lastValidBlockHeight,
      settle: resolve,
      reached: 0,
      isOverdue: false,
    });
    const outcome = await promise;
    this.#pending.delete(signature);
    return outcome;
  }

  async #freshBlockhash(): Promise<Blockhash['value'] | string> {
    const { clock, rpc } = this.#parts;
    if (this.#blockhash !== undefined && clock.monotonic() - this.#blockhashMs < BLOCKHASH_MS)
      return this.#blockhash;
    const answer = await this.#withRetries(() =>
      rpc('getLatestBlockhash', [{ commitment: 'confirmed' }], isLatestBlockhash),
    );
    if (answer.kind !== 'result')
      return `getLatestBlockhash: ${answer.kind === 'refused' ? answer.outcome : answer.reason}`;
    this.#blockhashMs = clock.monotonic();
    return (this.#blockhash = answer.result.value);
  }

  /** Looks at the statuses of all that is pending, until `over` aborts. */
  async #poll(over: AbortSignal): Promise<void> {
    const { clock, rpc, onProgress, signal } = this.#parts;
    /** When all was answered for the last time, and for how long refusals have held polls back since. */
    let [goodMs, heldMs, highest] = [clock.monotonic(), 0, -1];
    while (!over.aborted && !signal.aborted) {
      const beforeMs = clock.monotonic();
      await clock.sleep(this.#options.pollMs, AbortSignal.any([over, signal]));
      const { seconds = Infinity, calls = Infinity } = this.#options;
      onProgress(
        this.recorder,
        this.second(),
        Math.min(1, Math.max(this.second() / seconds, this.recorder.answers / calls)),
      );
      const isHeld = this.#isHeld();
      if (this.#pending.size === 0) [goodMs, heldMs] = [clock.monotonic(), 0];
      else if (isHeld && this.second() < seconds) heldMs += clock.monotonic() - beforeMs;
      const silentMs = clock.monotonic() - goodMs - Math.min(heldMs, 1_000 * RETRY_AFTER_MAX);
      if (silentMs >= this.#options.timeoutMs)
        for (const each of this.#pending.values()) each.settle('no status any more');
      if (this.#pending.size === 0 || isHeld) continue;
      // The height first: what is not there although it was too old by then never comes.
      const height = await rpc('getBlockHeight', [{ commitment: 'confirmed' }], isHeight);
      if (height.kind === 'refused') this.#hold(height);
      const looked = [...this.#pending.values()];
      // A chain that stands still is waited for no longer than an endpoint that does.
      let isGood = height.kind === 'result' && height.result > highest;
      if (height.kind === 'result') highest = Math.max(highest, height.result);
      for (let i = 0; i < looked.length && !over.aborted && !this.#isHeld(); i += STATUSES_MAX) {
        const some = looked.slice(i, i + STATUSES_MAX);
        const signatures = some.map(({ signature }) => signature);
        const answer = await rpc('getSignatureStatuses', [signatures], areStatuses);
        this.#polls++;
        if (answer.kind === 'refused') this.#hold(answer);
        if (answer.kind !== 'result') isGood = false;
        else for (const [j, each] of some.entries()) this.#note(each, answer.result.value[j] ?? null, height);
      }
      if (isGood) [goodMs, heldMs] = [clock.monotonic(), 0];
    }
    for (const each of this.#pending.values()) each.settle('stopped');
  }

  #note(pending: Pending, status: Status | undefined, height: Answered<number>): void {
    const nowMs = this.#parts.clock.monotonic();
    const tookMs = nowMs - pending.fromMs;
    if (status === null || typeof status !== 'object') {
      if (pending.isOverdue) return pending.settle('expired');
      pending.isOverdue = height.kind === 'result' && height.result > pending.lastValidBlockHeight;
      return;
    }
    if (status.err !== null && status.err !== undefined) return pending.settle('failed on the chain');
    if (height.kind === 'result' && height.result > pending.lastValidBlockHeight + LATE_BLOCKS)
      return pending.settle(`not ${this.#options.until} in time`);
    const until = COMMITMENTS.indexOf(this.#options.until);
    const at = COMMITMENTS.findIndex((each) => each === status.confirmationStatus);
    for (; pending.reached <= Math.min(at, until); pending.reached++) {
      const name = COMMITMENTS[pending.reached] ?? '';
      if (pending.reached < until) this.recorder.timesOf(name).note(tookMs);
      else {
        this.recorder.answered(this.second(), tookMs, 0);
        pending.settle(name);
      }
    }
  }

  /** Asks again, a few times and before the bound, where the answer is a refusal for now. */
  async #withRetries<T>(ask: () => Promise<Answered<T>>): Promise<Answered<T>> {
    const { clock, signal } = this.#parts;
    for (let attempt = 1; ; attempt++) {
      await this.#untilHeld();
      const answer = await ask();
      if (answer.kind === 'refused') this.#hold(answer);
      const isPassing = answer.kind === 'refused' && answer.retryAfter !== undefined;
      const nextMs = this.#options.honoursRetryAfter ? this.#heldUntilMs : clock.monotonic() + RETRY_MS;
      if (!isPassing || attempt === 5 || nextMs >= this.#endMs() || signal.aborted) return answer;
      await clock.sleep(nextMs - clock.monotonic(), signal);
    }
  }

  #isHeld(): boolean {
    return this.#parts.clock.monotonic() < this.#heldUntilMs;
  }

  #hold({ retryAfter }: Readonly<{ retryAfter: number | undefined }>): void {
    if (retryAfter === undefined || !this.#options.honoursRetryAfter) return;
    this.#heldUntilMs = Math.max(this.#heldUntilMs, this.#parts.clock.monotonic() + 1_000 * retryAfter);
  }

  /** Waits until calls may go out again, or for the bound. */
  async #untilHeld(): Promise<void> {
    const { clock, signal } = this.#parts;
    const leftMs = () => Math.min(this.#heldUntilMs, this.#endMs()) - clock.monotonic();
    // A timer may be early by less than a millisecond.
    while (leftMs() > 0 && !signal.aborted) await clock.sleep(Math.max(1, leftMs()), signal);
  }

  /** When no transfer begins any more. */
  #endMs(): number {
    return this.#startMs + 1_000 * (this.#options.seconds ?? Infinity);
  }
}
