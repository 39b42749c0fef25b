import { readFileSync } from 'node:fs';
import { createKeyPairSignerFromBytes, generateKeyPairSigner, type KeyPairSigner } from '@solana/kit';
import type { Clock } from '../shared/clock.ts';
import type { ConfirmOptions, LoadOptions, Options, ScanOptions } from './arguments.ts';
import { CallerConnection, shownUrl, targetOf } from './connection.ts';
import { runConfirm } from './confirm.ts';
import { DENIALS_MAX, type Loaded, RESULT, runLoad, UNREAD } from './load.ts';
import { mixFrom } from './mixed.ts';
import type { Recorder } from './recorder.ts';
import {
  batchesFrom,
  callsFrom,
  outcomesOf,
  type RequestSource,
  scanLimitOf,
  type WeightedCall,
  weightedCallsFrom,
} from './requests.ts';
import { type Figure, FORMAT, type Result, shown } from './result.ts';
import { createRpc } from './rpc.ts';
import { runScans } from './scan.ts';

/** What a run has of the machine. */
export type World = Readonly<{
  clock: Clock;
  random: (count: number) => Uint8Array;
  /** One turn of the event loop. */
  turn: () => Promise<void>;
  machine: string;
  /** Fires when the run is to end. */
  signal: AbortSignal;
  /** Takes a line of progress, which replaces the last one. */
  progress: (line: string) => void;
}>;

/** Why a run could not begin; `isMistake`: a file that the command line names cannot be used. */
type Unstarted = Readonly<{ isMistake: boolean; sentence: string }>;

/** Runs a command to its bound. */
export async function run(options: Options, world: World): Promise<Result | Unstarted> {
  if (options.command === 'scan') return scanResult(options, world);
  if (options.command === 'confirm') return confirmResult(options, world);
  return loadResult(options, world);
}

type Load = Extract<Options, LoadOptions>;

async function loadResult(options: Load, world: World): Promise<Result | Unstarted> {
  const at = startOf(world);
  const source = await sourceOf(options, world);
  if ('sentence' in source) return source;
  const target = targetOf(options);
  const connections = Array.from(
    { length: options.connections },
    () => new CallerConnection(target, world.clock, options.timeoutMs),
  );
  const onProgress = progressOf(world, 'requests');
  const { clock, turn, signal } = world;
  const parts = { clock, turn, connections, ...source, judge: outcomesOf, onProgress, signal };
  const loaded = await runLoad(options, parts);
  const { recorder, seconds } = loaded;
  const settings = {
    ...settingsOf(options),
    connections: options.connections,
    load: options.perSecond === undefined ? 'closed' : `${options.perSecond} a second`,
    'warm-up': `${options.warmUpSeconds} s`,
  };
  const own = resultOf(options, world, at, {
    counted: 'requests',
    settings,
    seconds,
    recorder,
    figures: loadFigures(options, loaded),
    notes: [...source.notes, ...loadNotes(options, loaded)],
  });
  const none = loaded.isDenied
    ? `Ended early: the first ${DENIALS_MAX} answers were all HTTP 401, 402 or 403.`
    : 'No request was answered by a result.';
  return { ...own, failures: recorder.answers > 0 || own.stopped ? [] : [none] };
}

/** What the requests of a load are made of. */
function settingsOf(options: Load): Result['settings'] {
  if (options.command === 'mixed')
    return options.file === undefined ? { programs: options.programs.join() } : { file: options.file };
  const { method, params } = options;
  return options.command === 'batch' ? { method, params, size: options.size } : { method, params };
}

type Source = Readonly<{ next: RequestSource; labels: readonly string[]; notes: readonly string[] }>;

async function sourceOf(options: Load, world: World): Promise<Source | Unstarted> {
  const { random } = world;
  if (options.command !== 'mixed') {
    const call = { weight: 1, method: options.method, params: options.params };
    const next =
      options.command === 'calls' ? callsFrom([call], random) : batchesFrom(call, options.size, random);
    return { next, labels: [], notes: [] };
  }
  if (options.file !== undefined) {
    const text = textOf(options.file);
    if (text === undefined) return mistake(`--file: ${options.file} cannot be read.`);
    const calls = weightedCallsFrom(text);
    if (typeof calls === 'string') return mistake(`--file: ${options.file}: ${calls}.`);
    return weighted(calls, []);
  }
  const scan: ScanOptions = {
    ...options,
    command: 'scan',
    seconds: undefined,
    calls: options.programs.length,
    slice: { offset: 0, length: 0 },
    filters: [],
    commitment: 'confirmed',
    ndjson: false,
    sha256: false,
  };
  world.progress('looking how large the programs are …');
  const { scans } = await runScans(scan, { ...world, onProgress: () => undefined });
  if (world.signal.aborted) return { isMistake: false, sentence: 'Stopped before it began.' };
  const wrong = scans.find(({ outcome }) => outcome !== 'complete');
  if (wrong !== undefined) {
    const sentence = `The mix is made of the accounts of ${wrong.program}, whose scan was ${wrong.outcome}: ${wrong.reason}.`;
    return { isMistake: false, sentence };
  }
  const { calls, notes } = mixFrom(scans, random);
  return weighted(calls, notes);

  function weighted(mix: readonly WeightedCall[], notes: readonly string[]): Source {
    const labels = mix.flatMap(({ label }) => label ?? []);
    return { next: callsFrom(mix, random), labels, notes };
  }
}

function loadFigures(
  options: Load,
  { recorder, seconds, unsent, late, retryAfters, heldBackMs }: Loaded,
): readonly Figure[] {
  const requests = recorder.answers + recorder.failures;
  const size = options.command === 'batch' ? options.size : 1;
  const perSecond = (value: number) => value / Math.max(seconds, 1e-9);
  return [
    { name: 'requests', value: requests, unit: '' },
    { name: 'answered', value: perSecond(recorder.answers), unit: 'requests/s', better: 'more' },
    ...(size > 1
      ? ([
          { name: 'calls', value: perSecond(recorder.answers * size), unit: 'calls/s', better: 'more' },
        ] as const)
      : []),
    { name: 'failed', value: (100 * recorder.failures) / Math.max(1, requests), unit: '%', better: 'less' },
    { name: 'read', value: recorder.bytes / 1e6, unit: 'MB' },
    { name: 'throughput', value: perSecond(recorder.bytes) / 1e6, unit: 'MB/s', better: 'more' },
    ...(options.perSecond === undefined
      ? []
      : ([
          { name: 'due and never sent', value: unsent, unit: 'requests', better: 'less' },
          { name: 'sent late by the bench, p99', value: late.at(0.99), unit: 'ms' },
        ] as const)),
    ...(retryAfters === 0
      ? []
      : [
          { name: 'answers with Retry-After', value: retryAfters, unit: '' },
          { name: 'held back for it', value: heldBackMs / 1_000, unit: 's' },
        ]),
  ];
}

function loadNotes(options: Load, { recorder, unsent }: Loaded): readonly string[] {
  const isOpen = options.perSecond !== undefined;
  return [
    isOpen
      ? 'Times count from when a request was due, also where it waited for a free connection.'
      : 'Times count from sending. An endpoint that stands still gets fewer requests: --rate shows what callers would feel.',
    ...(recorder.failures > 0 ? ['Times are of requests that were answered by results alone.'] : []),
    ...(unsent > 0
      ? [
          `Due requests that found no free connection: ${shown(unsent)}. Try more --connections, or a lower --rate.`,
        ]
      : []),
    ...(options.command === 'batch' ? ['A request is one batch.'] : []),
    ...Object.entries(recorder.outcomes).flatMap(([outcome, count]) => {
      const limit = options.command === 'mixed' ? scanLimitOf(outcome) : undefined;
      return limit === undefined ? [] : [scanLimitNote(limit, count)];
    }),
  ];
}

function scanLimitNote(limit: string, count: number): string {
  return `The plan of this key allows ${limit} scans at once, and ${shown(count)} calls were refused for that alone: use --connections ${limit}, or a plan with more scans.`;
}

async function scanResult(options: ScanOptions, world: World): Promise<Result> {
  const at = startOf(world);
  const { recorder, seconds, scans, figures, failures } = await runScans(options, {
    ...world,
    onProgress: progressOf(world, 'accounts'),
  });
  const settings = {
    programs: options.programs.join(),
    filters: JSON.stringify(options.filters),
    slice: options.slice === undefined ? 'none' : `${options.slice.offset}:${options.slice.length}`,
    form: options.ndjson ? 'ndjson' : 'json',
    commitment: options.commitment,
    sha256: options.sha256,
  };
  const notes = options.ndjson
    ? []
    : [
        'JSON is read by stream-json on one core: an endpoint that is faster waits for it. --ndjson is read faster.',
      ];
  const own = resultOf(options, world, at, {
    counted: 'accounts',
    settings,
    seconds,
    recorder,
    figures,
    notes,
  });
  return { ...own, scans, failures };
}

async function confirmResult(options: ConfirmOptions, world: World): Promise<Result | Unstarted> {
  const at = startOf(world);
  const { clock, signal } = world;
  const payer = await payerOf(options.keypair);
  if ('sentence' in payer) return payer;
  const rpc = createRpc(options, clock, signal);
  const onProgress = progressOf(world, 'transfers');
  const isNew = options.keypair === undefined;
  const { recorder, seconds, figures, failure } = await runConfirm(options, {
    clock,
    rpc,
    payer,
    isNew,
    onProgress,
    signal,
  });
  const settings = {
    connections: options.connections,
    load: options.perSecond === undefined ? 'closed' : `${options.perSecond} a second`,
    until: options.until,
    poll: `${options.pollMs} ms`,
  };
  const notes = [
    `Statuses were looked at every ${options.pollMs} ms: a commitment came up to that much earlier.`,
  ];
  const own = resultOf(options, world, at, {
    counted: 'transfers',
    settings,
    seconds,
    recorder,
    figures,
    notes,
  });
  const none = recorder.answers > 0 || own.stopped ? [] : [`No transfer was ${options.until}.`];
  return { ...own, failures: failure === undefined ? none : [failure] };
}

/** A keypair of solana-keygen: a list of the 64 bytes of secret and public key. */
async function payerOf(path: string | undefined): Promise<KeyPairSigner | Unstarted> {
  if (path === undefined) return generateKeyPairSigner();
  try {
    return await createKeyPairSignerFromBytes(Uint8Array.from(JSON.parse(textOf(path) ?? '')));
  } catch {
    return mistake(`--keypair: ${path} is no keypair of solana-keygen.`);
  }
}

function mistake(sentence: string): Unstarted {
  return { isMistake: true, sentence };
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

function startOf({ clock }: World): string {
  return new Date(clock.now()).toISOString();
}

/** What all results have in common. */
function resultOf(
  options: Options,
  { machine, signal }: World,
  at: string,
  own: Pick<Result, 'counted' | 'settings' | 'seconds' | 'figures' | 'notes'> & { recorder: Recorder },
): Result {
  const { recorder, settings, ...rest } = own;
  const common = {
    timeout: `${options.timeoutMs / 1_000} s`,
    'Retry-After': options.honoursRetryAfter ? 'honoured' : 'ignored',
  };
  return {
    format: FORMAT,
    command: options.command,
    endpoint: shownUrl(options.url),
    at,
    machine,
    stopped: signal.aborted,
    ...rest,
    settings: { ...settings, ...common },
    timings: [recorder.all.timing(), ...recorder.labels],
    outcomes: recorder.outcomes,
    run: recorder.seconds(own.seconds),
    failures: [],
  };
}

/** Writes a line of progress: rate, percentiles, failures by kind, time left. */
function progressOf({ progress }: World, what: Result['counted']) {
  return (recorder: Recorder, second: number, share: number) => {
    const { latest, all, outcomes } = recorder;
    const rate = latest === undefined ? '' : `${shown(latest.answers)} ${what}/s`;
    const megabytes = latest === undefined || latest.bytes < 1e6 ? '' : `${shown(latest.bytes / 1e6)} MB/s`;
    const times = all.count === 0 ? '' : `p50 ${shown(all.at(0.5))} ms, p99 ${shown(all.at(0.99))} ms`;
    const failures = Object.entries(outcomes).filter(([kind]) => !GOOD.has(kind));
    const kinds = failures.slice(0, 3).map(([kind, count]) => `${kind}: ${shown(count)}`);
    const left = share > 0 && share < 1 ? `${Math.ceil(second / share - second)} s left` : '';
    progress(
      [`${second.toFixed(0)} s`, rate, megabytes, times, ...kinds, left]
        .filter((part) => part !== '')
        .join(' · '),
    );
  };
}

/** Outcomes that are no failure. */
const GOOD = new Set([RESULT, UNREAD, 'complete', 'finalized', 'confirmed']);
