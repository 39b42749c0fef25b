/** A class of backends that can answer the same methods. */
export const LANES = ['state', 'scan', 'archive', 'assets', 'send'] as const;
export type Lane = (typeof LANES)[number];

/** Lanes of a backend whose table names none: everything but the asset-standard API. */
export const LANES_BY_DEFAULT: readonly Lane[] = ['state', 'scan', 'archive', 'send'];

/** Agave's bound on idle and busy sockets is far higher; 512 keeps one process's descriptors in hand. */
const CONNECTIONS_BY_DEFAULT = 512;

/** The software behind a backend's address: what it serves, and where it differs from an Agave node. */
type Profile = Readonly<{
  /** Its lanes, unless its table names others. */
  lanes: readonly Lane[];
  /** The lanes of which it serves anything at all, so that its table may name them. */
  mayServe: readonly Lane[];
  /**
   * Whether it goes with the tip of the chain, as a node does. What does not is never a live node, whatever lanes its
   * table names: a `getSlot` that an archive answers is the end of what it has.
   */
  followsTip: boolean;
  /** The only methods it serves of its lanes; `undefined`: all of them. */
  serves: ReadonlySet<string> | undefined;
  /** Methods beyond its lanes that it serves without a row in its table. */
  methods: readonly string[];
  /** Longest request body it takes, in bytes; `undefined` when it is configured at the node. */
  bodyBytesMax: number | undefined;
  connectionsMax: number;
  processed: boolean;
  /** Whether a request header tells it to leave its BigTable out (`x-bigtable: disabled`, Agave `rpc_service.rs`). */
  bigtable: boolean;
  /** How its pages of `getSignaturesForAddress` differ. */
  pages: Readonly<{
    /** The row of `until` is part of the page. */
    untilInclusive: boolean;
    /** Rows come newest first; otherwise in runs of an epoch, in any order of runs. */
    ordered: boolean;
    /** It takes `beforeSlot`: only rows of earlier slots. */
    beforeSlot: boolean;
  }>;
}>;

const AGAVE: Profile = {
  lanes: LANES_BY_DEFAULT,
  // A provider's one address may stand for all of it.
  mayServe: LANES,
  followsTip: true,
  serves: undefined,
  methods: [],
  // MAX_REQUEST_BODY_SIZE of Agave's `rpc_service.rs`.
  bodyBytesMax: 51_200,
  connectionsMax: CONNECTIONS_BY_DEFAULT,
  processed: true,
  bigtable: true,
  pages: { untilInclusive: false, ordered: true, beforeSlot: false },
};

export const PROFILE_NAMES = ['agave', 'old-faithful', 'superbank', 'cloudbreak', 'das'] as const;
export type ProfileName = (typeof PROFILE_NAMES)[number];

function methods(names: string): ReadonlySet<string> {
  return new Set(names.split(' '));
}

/** Every profile, as the software was in the middle of 2026. */
export const PROFILES: Readonly<Record<ProfileName, Profile>> = {
  agave: AGAVE,
  // rpcpool/yellowstone-faithful: archived epochs, one request a body, 1 KB of it.
  'old-faithful': {
    ...AGAVE,
    lanes: ['archive'],
    mayServe: ['archive'],
    followsTip: false,
    serves: methods(
      'getBlock getTransaction getSignaturesForAddress getBlockTime getBlocks ' +
        'getBlocksWithLimit getFirstAvailableBlock',
    ),
    bodyBytesMax: 1_024,
    bigtable: false,
    pages: { untilInclusive: true, ordered: false, beforeSlot: false },
  },
  // solana-rpc/superbank: history in ClickHouse.
  superbank: {
    ...AGAVE,
    lanes: ['archive'],
    mayServe: ['archive', 'state'],
    followsTip: false,
    serves: methods(
      'getBlock getTransaction getSignaturesForAddress getSignatureStatuses getBlocks ' +
        'getBlocksWithLimit getBlockTime getInflationReward getSlot getBlockHeight ' +
        'getTransactionCount getLatestBlockhash isBlockhashValid getEpochSchedule getHealth ' +
        'getFirstAvailableBlock minimumLedgerSlot',
    ),
    methods: ['getTransactionsForAddress'],
    bodyBytesMax: 1_048_576,
    bigtable: false,
    pages: { untilInclusive: false, ordered: true, beforeSlot: true },
  },
  // solana-rpc/cloudbreak: account state in Postgres; it ends a scan that failed cleanly, in the middle of its JSON.
  cloudbreak: {
    ...AGAVE,
    lanes: ['state', 'scan'],
    mayServe: ['state', 'scan'],
    serves: methods(
      'getProgramAccounts getTokenAccountsByOwner getTokenAccountsByDelegate getAccountInfo ' +
        'getMultipleAccounts getBalance getTokenAccountBalance getTokenSupply ' +
        'getTokenLargestAccounts getLargestAccounts getSlot getHealth getVersion getGenesisHash',
    ),
    methods: ['getTokenAccountsByMint'],
    bodyBytesMax: undefined,
    connectionsMax: 100,
    processed: false,
    bigtable: false,
  },
  // metaplex-foundation/digital-asset-rpc-infrastructure.
  das: {
    ...AGAVE,
    lanes: ['assets'],
    mayServe: ['assets'],
    followsTip: false,
    bodyBytesMax: undefined,
    bigtable: false,
  },
};
