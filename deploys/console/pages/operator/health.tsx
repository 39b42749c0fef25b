/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact';
import type { Plan } from '../../../../shared/config/plans.ts';
import manifest from '../../../../package.json' with { type: 'json' };
import { Ago, bytesText, countText, latencyText } from '../../components/format.tsx';
import {
  Badge,
  type Column,
  Columns,
  Empty,
  type Fact,
  factList,
  Live,
  Notice,
  Panel,
  StateBadge,
  type StateWord,
  TablePanel,
} from '../../components/panels.tsx';
import { Link } from '../../components/links.tsx';
import type { PageServices, WatcherSeen } from '../../page-services.ts';
import { operatorPage } from '../../page.ts';
import { userTable } from './user.tsx';
import { paths } from '../../paths.ts';
import { complaintOf, type Ownership } from '../../../accounts/ownership.ts';
import type { Health, StoreSize } from '../../../health/health.ts';
import type { RedisSeen } from '../../../health/neighbours.ts';

/** The health of every part of the installation. */
export const healthPage = operatorPage({
  path: paths.health,
  entry: ['Health', 'pulse'],
  async show(services) {
    const state = await stateOf(services);
    const troubles = troublesOf(state);
    return {
      title: 'Health',
      aside: <Badge tone="waiting">Live</Badge>,
      body: [
        <Live id="health" everySeconds={10}>
          <div class="panel-stack">
            <Notice tone={troubles.length === 0 ? 'good' : 'warning'}>
              {troubles.length === 0 ? 'All systems healthy.' : troubles.map((sentence) => <p>{sentence}</p>)}
            </Notice>
            <Columns>
              {watcherPanel(state.watcher)}
              {servicePanel(state)}
            </Columns>
            <TablePanel
              title="Stores"
              columns={[
                ['Store', ({ name }) => name, 'head'],
                ['State', ({ state: shown }) => shown],
                ['Size', ({ size = '–' }) => size, 'end'],
                ['Log (WAL)', ({ wal = '–' }) => wal, 'end'],
              ]}
              rows={[...services.operator.storeSizes().map(storeRow), ...redisRows(state.redis)]}
            />
          </div>
        </Live>,
        <Panel title="Operators" isFlush>
          {userTable(state.operators, false, <Empty title="No operators" />)}
        </Panel>,
        <TablePanel
          title="Configured plans"
          caption="Plans"
          columns={PLAN_COLUMNS}
          rows={[...services.plans]}
        />,
      ],
    };
  },
});

const PLAN_COLUMNS: readonly Column<readonly [name: string, plan: Plan]>[] = [
  ['Plan', ([name]) => name, 'head'],
  ['Calls per second', ([, { rps }]) => (Number.isInteger(rps) ? countText(rps) : String(rps)), 'end'],
  ['Burst', ([, { burst }]) => countText(burst), 'end'],
  ['Credits', ([, { credits }]) => countText(credits, 'Unlimited'), 'end'],
  ['Batch size', ([, { batchMax }]) => countText(batchMax), 'end'],
  ['Concurrent scans', ([, { scans }]) => countText(scans), 'end'],
  ['Concurrent calls', ([, { inFlight }]) => countText(inFlight), 'end'],
];

async function stateOf({ operator, auth }: PageServices) {
  const [gateways, redis] = await Promise.all([operator.readGateways(), operator.readRedis?.()]);
  const { watcher, deliveries, publication } = operator;
  const [seen, operators] = [watcher(), auth.users.operators()];
  return { watcher: seen, deliveries: deliveries(), publication: publication(), gateways, redis, operators };
}

type State = Awaited<ReturnType<typeof stateOf>>;

/** Lists all that needs an operator's attention, a sentence each. */
function troublesOf(state: State): readonly string[] {
  const { watcher, deliveries, publication, gateways, redis, operators } = state;
  const without = operators.filter(({ hasSecondFactor }) => !hasSecondFactor).length;
  const who = `${countText(without)} ${without === 1 ? 'operator does' : 'operators do'}`;
  return [
    ...[watcher.health, deliveries].flatMap((health) => (health.isWell ? [] : [health.sentence])),
    ...[publication && complaintOf(publication)].flatMap((complaint) => complaint ?? []),
    ...gateways.flatMap((gateway) =>
      gateway.kind === 'seen' ? [] : [`Gateway ${gateway.host} is unreachable (${gateway.reason}).`],
    ),
    ...(redis ?? []).flatMap((node) =>
      node.kind === 'answers' ? [] : [`Redis ${node.host} is unreachable (${node.reason}).`],
    ),
    ...(without === 0 ? [] : [`${who} not use two-factor authentication.`]),
  ];
}

function watcherPanel({ health, checkedAtMs, contextSlot, programs, pollMs, rpcHosts }: WatcherSeen) {
  return (
    <Panel title="Watcher" aside={wellBadge(health)}>
      {factList([
        ['Last check', <Ago atMs={checkedAtMs} none="None yet" />],
        ['Slot', contextSlot === undefined ? 'Unknown' : contextSlot.toLocaleString('en-US')],
        ['Programs', countText(programs)],
        ['Interval', `${pollMs / 1_000} s`],
        ['Data source', rpcHosts.map((host) => <code>{host}</code>)],
      ])}
      {!health.isWell && <p>{health.sentence}</p>}
    </Panel>
  );
}

function wellBadge({ isWell }: Health) {
  return isWell ? <Badge tone="good">Healthy</Badge> : <Badge tone="bad">Unhealthy</Badge>;
}

/** How accounts and keys come to gateways on other hosts. */
const PUBLICATION: Readonly<Record<Ownership['kind'], StateWord>> = {
  sole: ['Published', 'good'],
  unknown: ['Redis unreachable', 'warning'],
  unpublished: ['Redis unreachable', 'warning'],
  'cut-off': ['Redis unreachable', 'warning'],
  'taking-over': ['Publishing', 'waiting'],
  'other-origin': ['Not published', 'bad'],
  waiting: ['Not published', 'bad'],
  unreadable: ['Not published', 'bad'],
  behind: ['Older copy', 'bad'],
};

function publicationWord(state: Ownership): StateWord {
  return state.kind === 'sole' && !state.isWhole ? PUBLICATION['taking-over'] : PUBLICATION[state.kind];
}

function servicePanel({ deliveries, publication, gateways }: State) {
  const versions = new Set(
    gateways.flatMap((gateway) => (gateway.kind === 'seen' ? gateway.status.version : [])),
  );
  const isMixed = [...versions].some((version) => version !== manifest.version);
  return (
    <Panel title="Service" aside={isMixed && <Badge tone="warning">Mixed versions</Badge>}>
      {factList([
        ['Version', manifest.version],
        ['Bun', Bun.version],
        [
          'Deliveries',
          <>
            {wellBadge(deliveries)} <Link to={paths.queue}>Queue</Link>
          </>,
        ],
        publication !== undefined && ['Accounts and keys', <StateBadge of={publicationWord(publication)} />],
        ...gateways.map((gateway): Fact => {
          const isSeen = gateway.kind === 'seen';
          return [
            `Gateway ${gateway.host}`,
            <>
              <Badge tone={isSeen ? 'good' : 'bad'}>{isSeen ? 'Reachable' : 'Unreachable'}</Badge>{' '}
              {isSeen ? `version ${gateway.status.version}` : gateway.reason}
            </>,
          ];
        }),
        ['Backup', 'Not managed by Sluice. Back up with VACUUM INTO, not by copying the file.'],
      ])}
    </Panel>
  );
}

type StoreRow = Readonly<{ name: string; state: ComponentChildren; size?: string; wal?: string }>;

/** No row for an unreadable database: this page itself could not have been rendered. */
function storeRow({ name, bytes, walBytes }: StoreSize): StoreRow {
  const state = bytes === 0 ? <Badge tone="warning">No file</Badge> : <Badge tone="good">In use</Badge>;
  return { name, state, size: bytesText(bytes), wal: bytesText(walBytes) };
}

function redisRows(redis: readonly RedisSeen[] | undefined): readonly StoreRow[] {
  if (redis === undefined) return [{ name: 'Redis', state: 'Not configured: limits apply per host' }];
  return redis.map((node) => ({
    name: `Redis ${node.host}`,
    state: (
      <>
        {node.kind === 'answers' ? (
          <Badge tone="good">Reachable</Badge>
        ) : (
          <Badge tone="bad">Unreachable</Badge>
        )}{' '}
        {node.kind === 'answers' ? latencyText(node.tookMs) : node.reason}
      </>
    ),
  }));
}
