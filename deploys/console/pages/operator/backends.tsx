/** @jsxImportSource preact */
import type { BackendStatus } from '../../../../shared/gateway-status.ts';
import { countText, shareText, spanText } from '../../components/format.tsx';
import { Badge, Empty, Live, Notice, Panel, statRow, TablePanel } from '../../components/panels.tsx';
import { operatorPage } from '../../page.ts';
import { paths } from '../../paths.ts';
import type { GatewaySeen } from '../../../health/neighbours.ts';

/** How every gateway sees its backends, now. */
export const backendsPage = operatorPage({
  path: paths.backends,
  entry: ['Backends', 'server'],
  async show({ operator }) {
    const gateways = await operator.readGateways();
    return {
      title: 'Backends',
      aside: <Badge tone="waiting">Live</Badge>,
      body: (
        <Live id="backends">
          <div class="panel-stack">
            {figures(gateways)}
            {gateways.map(gatewayPanel)}
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
    };
  },
});

function figures(gateways: readonly GatewaySeen[]) {
  const seen = gateways.filter((gateway) => gateway.kind === 'seen');
  const backends = seen.flatMap(({ status }) => status.backends);
  const sum = (figure: 'in_flight' | 'recent_answered' | 'recent_failed') =>
    backends.reduce((all, backend) => all + backend[figure], 0);
  const recent = { recent_answered: sum('recent_answered'), recent_failed: sum('recent_failed') };
  const active = backends.filter((backend) => backend.in).length;
  const slots = backends.flatMap(({ slot }) => slot ?? []);
  const isMissing = seen.length < gateways.length;
  return statRow([
    ['Gateways reachable', `${seen.length} of ${gateways.length}`, undefined, isMissing && 'bad'],
    ['Active backends', `${active} of ${backends.length}`, undefined, active < backends.length && 'warning'],
    ['Newest slot', slots.length === 0 ? 'Unknown' : countText(Math.max(...slots))],
    ['In flight', countText(sum('in_flight'))],
    ['Failure rate, recent', errorShare(recent), errorText(recent), recent.recent_failed > 0 && 'warning'],
  ]);
}

function gatewayPanel(gateway: GatewaySeen) {
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
      aside={
        <>
          <span>
            {countText(status.processes)} {status.processes === 1 ? 'process' : 'processes'}
          </span>
          <span>version {status.version}</span>
          <Badge tone="good">Reachable</Badge>
        </>
      }
      caption={`Backends of ${host}`}
      columns={[
        ['Backend', ({ name }) => name, 'head'],
        ['Status', standing],
        ['Profile', ({ profile }) => profile],
        ['Lanes', ({ lanes }) => lanes.join(', ')],
        ['Slot', ({ slot }) => countText(slot, 'Unknown'), 'end'],
        ['Lag', ({ lag_slots }) => countText(lag_slots, 'Unknown'), 'end'],
        [
          'In flight',
          ({ in_flight, max_connections }) => `${countText(in_flight)} of ${countText(max_connections)}`,
          'end',
        ],
        [`Failed, ${spanText(1_000 * status.recent_seconds)}`, errorText, 'end'],
        ['Error rate', errorShare, 'end'],
      ]}
      rows={status.backends}
      empty={<Empty title="No backends" />}
    />
  );
}

/** With the reason for its exclusion; of several processes, one that excludes it is enough. */
function standing({ in: isActive, why }: BackendStatus) {
  if (isActive && why === null) return <Badge tone="good">Active</Badge>;
  return (
    <span>
      <Badge tone={isActive ? 'warning' : 'bad'}>{isActive ? 'Active' : 'Excluded'}</Badge>{' '}
      {why ?? 'no reason given'}
    </span>
  );
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
