/** @jsxImportSource preact */
import type { BackendStatus, GatewayStatus } from '../../../../shared/gateway-status.ts';
import { countText, shareText, spanText } from '../../components/format.tsx';
import { Badge, Notice } from '../../components/icons.tsx';
import { withQuery } from '../../components/links.tsx';
import { Empty, Live, Panel, Stats } from '../../components/panels.tsx';
import { TablePanel } from '../../components/table.tsx';
import type { ViewerContext } from '../../context.ts';
import type { PageServices } from '../../page-services.ts';
import type { GatewaySeen } from '../../../health/neighbours.ts';

type Seen = Extract<GatewaySeen, { kind: 'seen' }>;

/** How every gateway sees its backends, now. */
export async function backendsPage(
  { operator }: PageServices,
  { url, show }: ViewerContext,
): Promise<Response> {
  const gateways = await operator.readGateways();
  return show({
    title: 'Backends',
    aside: <Badge tone="waiting">Live</Badge>,
    body: (
      <Live id="backends" from={withQuery(url, {})}>
        <div class="panel-stack">
          <Figures gateways={gateways} />
          {gateways.map((gateway) => (
            <Gateway key={gateway.host} gateway={gateway} />
          ))}
          {gateways.length === 0 && (
            <Empty title="No gateways configured">
              <p>
                Add their metrics addresses to <code>deploys.gateways</code>.
              </p>
            </Empty>
          )}
        </div>
      </Live>
    ),
  });
}

function Figures({ gateways }: Readonly<{ gateways: readonly GatewaySeen[] }>) {
  const seen = gateways.filter((gateway): gateway is Seen => gateway.kind === 'seen');
  const backends = seen.flatMap(({ status }) => status.backends);
  const sum = (figure: 'in_flight' | 'recent_answered' | 'recent_failed') =>
    backends.reduce((all, backend) => all + backend[figure], 0);
  const recent = { recent_answered: sum('recent_answered'), recent_failed: sum('recent_failed') };
  const taking = backends.filter((backend) => backend.in).length;
  const slots = backends.flatMap(({ slot }) => slot ?? []);
  return (
    <Stats
      stats={[
        {
          label: 'Gateways reachable',
          value: `${seen.length} of ${gateways.length}`,
          tone: seen.length < gateways.length ? 'bad' : undefined,
        },
        {
          label: 'Active backends',
          value: `${taking} of ${backends.length}`,
          tone: taking < backends.length ? 'warning' : undefined,
        },
        { label: 'Newest slot', value: slots.length === 0 ? 'Unknown' : countText(Math.max(...slots)) },
        { label: 'In flight', value: countText(sum('in_flight')) },
        {
          label: 'Failure rate, recent',
          value: errorShare(recent),
          note: errorText(recent),
          tone: recent.recent_failed > 0 ? 'warning' : undefined,
        },
      ]}
    />
  );
}

function Gateway({ gateway }: Readonly<{ gateway: GatewaySeen }>) {
  if (gateway.kind === 'cannot-be-reached')
    return (
      <Panel title={gateway.host} aside={<Badge tone="bad">Unreachable</Badge>}>
        <Notice tone="bad">
          This gateway's metrics address is unreachable ({gateway.reason}), so the state of its backends is
          unknown. It may still be serving requests.
        </Notice>
      </Panel>
    );
  const { status, host } = gateway;
  return (
    <TablePanel
      title={host}
      aside={<GatewayNote status={status} />}
      caption={`Backends of ${host}`}
      columns={[
        ['Backend', ({ name }) => name, 'head'],
        ['Status', (backend) => <Standing backend={backend} />],
        ['Profile', ({ profile }) => profile],
        ['Lanes', ({ lanes }) => lanes.join(', ')],
        ['Slot', ({ slot }) => known(slot), 'end'],
        ['Lag', ({ lag_slots }) => known(lag_slots), 'end'],
        [
          'In flight',
          ({ in_flight, max_connections }) => `${countText(in_flight)} of ${countText(max_connections)}`,
          'end',
        ],
        [`Failed, ${spanText(1_000 * status.recent_seconds)}`, errorText, 'end'],
        ['Error rate', errorShare, 'end'],
      ]}
      rows={status.backends}
      keyOf={({ name }) => name}
      empty={<Empty title="No backends" />}
    />
  );
}

function GatewayNote({ status: { processes, version } }: Readonly<{ status: GatewayStatus }>) {
  return (
    <>
      <span>
        {countText(processes)} {processes === 1 ? 'process' : 'processes'}
      </span>
      <span>version {version}</span>
      <Badge tone="good">Reachable</Badge>
    </>
  );
}

/** With the reason for its exclusion; of several processes, one that excludes it is enough. */
function Standing({ backend }: Readonly<{ backend: BackendStatus }>) {
  const { why } = backend;
  if (!backend.in || why !== null)
    return (
      <span>
        <Badge tone={backend.in ? 'warning' : 'bad'}>{backend.in ? 'Active' : 'Excluded'}</Badge>{' '}
        {why ?? 'no reason given'}
      </span>
    );
  return <Badge tone="good">Active</Badge>;
}

function known(count: number | null): string {
  return count === null ? 'Unknown' : countText(count);
}

type Recent = Pick<BackendStatus, 'recent_answered' | 'recent_failed'>;

/** `3 of 120`, or that there were no requests. */
function errorText({ recent_answered, recent_failed }: Recent): string {
  const all = recent_answered + recent_failed;
  return all === 0 ? 'No requests' : `${countText(recent_failed)} of ${countText(all)}`;
}

function errorShare({ recent_answered, recent_failed }: Recent): string {
  const all = recent_answered + recent_failed;
  return all === 0 ? '–' : shareText(recent_failed / all);
}
