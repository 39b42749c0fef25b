/** @jsxImportSource preact */
import manifest from '../../../../package.json' with { type: 'json' };
import { unreachable } from '../../../../shared/brand.ts';
import type { GatewaySeen } from '../../../gateway-status/read-gateways.ts';
import type { Health } from '../../../health.ts';
import type { PublicationState } from '../../../publish/publication-state.ts';
import { Badge } from '../../components/icons.tsx';
import { Facts, Panel } from '../../components/panels.tsx';
import { Link } from '../../components/links.tsx';

/** Whether a part does its work. */
export function WellBadge({ isWell }: Readonly<{ isWell: boolean }>) {
  return isWell ? <Badge tone="good">well</Badge> : <Badge tone="bad">not well</Badge>;
}

/** How accounts and keys come to gateways on other hosts, in a badge. */
function PublicationBadge({ state }: Readonly<{ state: PublicationState }>) {
  switch (state.kind) {
    case 'publishing':
      return <Badge tone="good">published</Badge>;
    case 'building':
      return <Badge tone="waiting">being published</Badge>;
    case 'away':
      return <Badge tone="warning">Redis does not answer</Badge>;
    case 'other-origin':
    case 'held':
      return <Badge tone="bad">not published</Badge>;
    default:
      return unreachable(state);
  }
}

type Props = Readonly<{
  deliveries: Health | undefined;
  publication: PublicationState | undefined;
  gateways: readonly GatewaySeen[];
}>;

/** The parts of the installation, and whether each does its work. */
export function ServicePanel({ deliveries, publication, gateways }: Props) {
  const versions = new Set(
    gateways.flatMap((gateway) => (gateway.kind === 'seen' ? gateway.status.version : [])),
  );
  const isMixed = [...versions].some((version) => version !== manifest.version);
  return (
    <Panel title="Service" aside={isMixed && <Badge tone="warning">mixed versions</Badge>}>
      <Facts
        facts={[
          { label: 'Version', value: manifest.version },
          { label: 'Bun', value: Bun.version },
          {
            label: 'Deliveries',
            value:
              deliveries === undefined ? (
                'not sent by this process'
              ) : (
                <>
                  <WellBadge isWell={deliveries.isWell} /> <Link to="/operator/queue">Queue</Link>
                </>
              ),
          },
          ...(publication === undefined
            ? []
            : [{ label: 'Accounts and keys', value: <PublicationBadge state={publication} /> }]),
          ...gateways.map((gateway) => ({
            label: `Gateway ${gateway.host}`,
            value:
              gateway.kind === 'seen' ? (
                <>
                  <Badge tone="good">reached</Badge> version {gateway.status.version}
                </>
              ) : (
                <>
                  <Badge tone="bad">cannot be reached</Badge> {gateway.reason}
                </>
              ),
          })),
          {
            label: 'Backup',
            value: 'Unknown: Sluice makes none and cannot see yours. Use VACUUM INTO, not a plain copy.',
          },
        ]}
      />
    </Panel>
  );
}
