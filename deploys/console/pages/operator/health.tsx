/** @jsxImportSource preact */
import type { Plan } from '../../../../shared/config/plans.ts';
import type { GatewaySeen } from '../../../gateway-status/read-gateways.ts';
import { complaintOf } from '../../../publish/publication-state.ts';
import type { RedisSeen } from '../../../store/redis-seen.ts';
import type { User } from '../../../users/users.ts';
import type { AskedByViewer, Page } from '../../context.ts';
import { Badge, Notice } from '../../components/icons.tsx';
import { Columns, Empty, Facts, Live, Panel } from '../../components/panels.tsx';
import { Ago, countText } from '../../components/format.tsx';
import { withQuery } from '../../components/links.tsx';
import { Table } from '../../components/table.tsx';
import type { OperatorDeps, PageDeps, WatcherSeen } from '../../page-services.ts';
import { ServicePanel, WellBadge } from './service-panel.tsx';
import { StorePanel } from './store-panel.tsx';
import { UserTable } from './users.tsx';

type Deps = Pick<PageDeps, 'operator' | 'people' | 'plans'>;
type State = Readonly<{
  watcher: WatcherSeen;
  deliveries: ReturnType<OperatorDeps['deliveries']>;
  publication: ReturnType<OperatorDeps['publication']>;
  gateways: readonly GatewaySeen[];
  redis: readonly RedisSeen[] | undefined;
  operators: readonly User[];
}>;

/** `GET /operator/health`: whether everything does its work, and on what. */
export function createHealthPage({ operator, people, plans }: Deps): Page<AskedByViewer> {
  return async function healthPage({ url, nowMs, show }) {
    const [gateways, redis] = await Promise.all([operator.readGateways(), operator.readRedis?.()]);
    const operators = people.users.operators();
    const state: State = {
      watcher: operator.watcher(),
      deliveries: operator.deliveries(),
      publication: operator.publication(),
      gateways,
      redis,
      operators,
    };
    return show({
      title: 'Health',
      aside: <Badge tone="waiting">live</Badge>,
      body: (
        <>
          <Live id="health" from={withQuery(url, {})} everySeconds={10}>
            <div class="panel-stack">
              <Verdict troubles={troublesOf(state)} />
              <Columns>
                <WatcherPanel state={state} nowMs={nowMs} />
                <ServicePanel {...state} />
              </Columns>
              <StorePanel sizes={operator.storeSizes()} redis={redis} />
            </div>
          </Live>
          <Panel title="Operators" isFlush>
            <UserTable users={operators} isRoleShown={false} empty={<Empty title="There is no operator" />} />
          </Panel>
          <PlanPanel plans={plans} />
        </>
      ),
    });
  };
}

/** What an operator should look at, a sentence each. */
function troublesOf(state: State): readonly string[] {
  const { watcher, deliveries, publication, gateways, redis, operators } = state;
  const unpublished = publication && complaintOf(publication);
  const without = operators.filter(({ hasSecondFactor }) => !hasSecondFactor).length;
  const of = (count: number, one: string, many: string) => `${countText(count)} ${count === 1 ? one : many}`;
  return [
    ...(watcher.health.isWell ? [] : [watcher.health.sentence]),
    ...(deliveries === undefined || deliveries.isWell ? [] : [deliveries.sentence]),
    ...(unpublished === undefined ? [] : [unpublished]),
    ...gateways.flatMap((gateway) =>
      gateway.kind === 'seen'
        ? []
        : [`The gateway at ${gateway.host} cannot be reached (${gateway.reason}).`],
    ),
    ...(redis ?? []).flatMap((node) =>
      node.kind === 'answers' ? [] : [`Redis at ${node.host} cannot be reached (${node.reason}).`],
    ),
    ...(without === 0 ? [] : [`${of(without, 'operator has', 'operators have')} no second factor.`]),
  ];
}

function Verdict({ troubles }: Readonly<{ troubles: readonly string[] }>) {
  if (troubles.length === 0)
    return <Notice tone="good">Everything that can be seen from here does its work.</Notice>;
  return (
    <Notice tone="warning">
      {troubles.map((sentence) => (
        <p key={sentence}>{sentence}</p>
      ))}
    </Notice>
  );
}

function WatcherPanel({ state: { watcher }, nowMs }: Readonly<{ state: State; nowMs: number }>) {
  const { health, checkedAtMs, contextSlot, programs, pollMs, rpcHosts } = watcher;
  return (
    <Panel title="Watcher" aside={<WellBadge isWell={health.isWell} />}>
      <Facts
        facts={[
          {
            label: 'Last reading',
            value: checkedAtMs === undefined ? 'none yet' : <Ago atMs={checkedAtMs} nowMs={nowMs} />,
          },
          {
            label: 'At slot',
            value: contextSlot === undefined ? 'unknown' : contextSlot.toLocaleString('en-US'),
          },
          { label: 'Programs', value: countText(programs) },
          { label: 'Reads every', value: `${pollMs / 1_000} s` },
          { label: 'Reads through', value: rpcHosts.map((host) => <code key={host}>{host}</code>) },
        ]}
      />
      {!health.isWell && <p>{health.sentence}</p>}
    </Panel>
  );
}

function PlanPanel({ plans }: Readonly<{ plans: ReadonlyMap<string, Plan> }>) {
  return (
    <Panel title="Plans, as configured" isFlush>
      <Table
        caption="Plans"
        columns={[
          { label: 'Plan', cell: ([name]) => name, isRowHead: true },
          { label: 'Calls a second', align: 'end', cell: ([, { rps }]) => rateText(rps) },
          { label: 'Burst', align: 'end', cell: ([, { burst }]) => countText(burst) },
          {
            label: 'Credits',
            align: 'end',
            cell: ([, { credits }]) => (credits === undefined ? 'no limit' : countText(credits)),
          },
          { label: 'Calls in a batch', align: 'end', cell: ([, { batchMax }]) => countText(batchMax) },
          { label: 'Scans at once', align: 'end', cell: ([, { scans }]) => countText(scans) },
          { label: 'Calls at once', align: 'end', cell: ([, { inFlight }]) => countText(inFlight) },
        ]}
        rows={[...plans]}
        keyOf={([name]) => name}
        empty={null}
      />
    </Panel>
  );
}

/** A rate may be a part of one. */
function rateText(rps: number): string {
  return Number.isInteger(rps) ? countText(rps) : String(rps);
}
