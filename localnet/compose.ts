import type { Address } from '@solana/kit';
import type { Clock } from '../shared/clock.ts';
import { createChain } from './chain/chain.ts';
import type { FileAccount } from './genesis/account-files.ts';
import { genesisAccounts } from './genesis/accounts.ts';
import { serveLocalnet, type ServeOptions } from './http/server.ts';
import { openLedger } from './store/ledger.ts';

type LocalnetOptions = Readonly<{
  /** Programs that exist from the start; only used when the chain is new. */
  programs: readonly Address[];
  /** Where `localnet.db` lies; undefined keeps the chain in memory. */
  dataDir: string | undefined;
  slotMs: number;
  /** After how many slots a slot is finalized; at least 1. */
  rootedLag: number;
  clock: Clock;
  random(bytes: number): Uint8Array;
  /** Written where the chain never had an account of the address. */
  accounts: readonly FileAccount[];
}>;

/** A chain, its file, the clock that moves it, and its listener; it stands still until it is run. */
export type Localnet = Awaited<ReturnType<typeof createLocalnet>>;

// Beyond this the clock was set or the machine slept: the chain goes on from where it is.
const LAG_SLOTS_MAX = 512;
const PACE_WHEN_AHEAD = 1.25;

/** Opens or begins a localnet. Throws an Error with one sentence when its file cannot be used. */
export async function createLocalnet(options: LocalnetOptions) {
  const { clock, slotMs } = options;
  const ledger = openLedger(options.dataDir);
  const chain = await createChain({
    ledger,
    slotMs,
    rootedLag: options.rootedLag,
    nowMs: clock.now(),
    random: options.random,
    genesis: (rentMinimum) => genesisAccounts(options.programs, rentMinimum),
    files: options.accounts,
  });

  /** Moves the chain by the clock until the signal aborts. */
  async function run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const waitMs = chain.tipEndMs() - clock.now();
      if (waitMs < -LAG_SLOTS_MAX * slotMs) chain.realign(clock.now());
      if (waitMs <= 0) {
        chain.advance();
        continue;
      }
      // The chain is ahead after a crash, or when the clock was set back. Its time never goes back, and it must not
      // stand still either: it takes longer slots until it is level again.
      const pauseMs = Math.min(waitMs, slotMs * PACE_WHEN_AHEAD);
      await clock.sleep(pauseMs, signal);
      if (pauseMs < waitMs && !signal.aborted) chain.advance();
    }
  }

  return {
    chain,
    run,
    /** Listens for calls. Throws an Error with one sentence when the address cannot be had. */
    serve: (at: Omit<ServeOptions, 'chain'>) => serveLocalnet({ ...at, chain }),
    /** Ends the chain cleanly. `run` must have ended. */
    close: chain.close,
  } as const;
}
