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
    aside: <Badge tone="waiting">live</Badge>,
    body: (
      <Live id="backends" from={withQuery(url, {})}>
        <div class="panel-stack">
          <Figures gateways={gateways} />
          {gateways.map((gateway) => (
            <Gateway key={gateway.host} gateway={gateway} />
          ))}
          {gateways.length === 0 && (
            <Empty title="No gateway is configured">
              <p>
                <code>deploys.gateways</code> lists the metrics addresses of those that are shown here.
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
          label: 'Gateways reached',
          value: `${seen.length} of ${gateways.length}`,
          tone: seen.length < gateways.length ? 'bad' : undefined,
        },
        {
          label: 'Backends that take part',
          value: `${taking} of ${backends.length}`,
          tone: taking < backends.length ? 'warning' : undefined,
        },
        { label: 'Newest slot', value: slots.length === 0 ? 'unknown' : countText(Math.max(...slots)) },
        { label: 'In flight', value: countText(sum('in_flight')) },
        {
          label: 'Failed lately',
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
      <Panel title={gateway.host} aside={<Badge tone="bad">cannot be reached</Badge>}>
        <Notice tone="bad">
          This gateway cannot be reached ({gateway.reason}), so nothing is known of its backends. It may serve
          callers still: what was asked is its metrics address.
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
        ['Standing', (backend) => <Standing backend={backend} />],
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
      empty={<Empty title="This gateway has no backends" />}
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
      <Badge tone="good">reached</Badge>
    </>
  );
}

/** Why it is left out stands beside it; of several processes, one that has it out is enough. */
function Standing({ backend }: Readonly<{ backend: BackendStatus }>) {
  const { why } = backend;
  if (!backend.in || why !== null)
    return (
      <span>
        <Badge tone={backend.in ? 'warning' : 'bad'}>{backend.in ? 'in' : 'left out'}</Badge>{' '}
        {why ?? 'for a reason it does not tell'}
      </span>
    );
  return <Badge tone="good">in</Badge>;
}

function known(count: number | null): string {
  return count === null ? 'unknown' : countText(count);
}

type Recent = Pick<BackendStatus, 'recent_answered' | 'recent_failed'>;

/** `3 of 120`; nothing was asked of it: `none asked`. */
function errorText({ recent_answered, recent_failed }: Recent): string {
  const all = recent_answered + recent_failed;
  return all === 0 ? 'none asked' : `${countText(recent_failed)} of ${countText(all)}`;
}

function errorShare({ recent_answered, recent_failed }: Recent): string {
  const all = recent_answered + recent_failed;
  return all === 0 ? '–' : shareText(recent_failed / all);
}
