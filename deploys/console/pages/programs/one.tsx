/** @jsxImportSource preact */
import type { SeenDeploy } from '../../../programs/history.ts';
import type { AskedOfAccount, Page } from '../../context.ts';
import { CopyButton, ShortAddress } from '../../components/code.tsx';
import { Empty, Facts, Panel } from '../../components/panels.tsx';
import { ButtonLink } from '../../components/forms.tsx';
import { Link, Pager, withQuery } from '../../components/links.tsx';
import { Ago, countText, Time } from '../../components/format.tsx';
import { Table } from '../../components/table.tsx';
import { deliveriesPath, webhooksPath } from '../../paths.ts';
import type { WebhookPageDeps } from '../../page-services.ts';
import { StatusBadge } from './status-badge.tsx';

const PAGE_ROWS = 50;

/** One program: how it stands, and the deploys that were seen of it. */
export function programPage({ programs, history }: WebhookPageDeps): Page<AskedOfAccount> {
  return function program({ account, nowMs, params, url, show, notFound }) {
    const found = programs({}, nowMs).find(({ programId }) => programId === params['programId']);
    if (found === undefined) return notFound();
    const { programId, label, status, deploySlot, deployedAtMs, authority } = found;
    const before = /^\d{1,15}$/.exec(url.searchParams.get('before') ?? '')?.[0];
    const place = before === undefined ? {} : { before: Number(before) };
    const deploys = history.of(programId, { ...place, limit: PAGE_ROWS });
    const last = deploys.length === PAGE_ROWS ? deploys.at(-1) : undefined;
    return show({
      title: label,
      crumbs: [{ label: 'Programs', to: `/accounts/${account.id}/programs` }],
      aside: (
        <ButtonLink to={`${webhooksPath(account)}/new?program=${programId}`} kind="primary">
          Watch by webhook
        </ButtonLink>
      ),
      body: (
        <>
          <Panel title="About">
            <Facts
              facts={[
                { label: 'Address', value: <Address id="program-address" address={programId} of={label} /> },
                { label: 'Status', value: <StatusBadge status={status} /> },
                { label: 'Deploy slot', value: deploySlot === undefined ? 'none' : countText(deploySlot) },
                {
                  label: 'Deployed',
                  value: deployedAtMs === undefined ? 'not known' : <Deployed {...{ deployedAtMs, nowMs }} />,
                },
                {
                  label: 'Upgrade authority',
                  value:
                    authority === undefined ? (
                      'none: nobody can upgrade it'
                    ) : (
                      <Address id="authority" address={authority} of="the upgrade authority" />
                    ),
                },
                {
                  label: 'Deliveries',
                  value: <Link to={deliveriesPath(account, { program: programId })}>of this program</Link>,
                },
              ]}
            />
          </Panel>
          <Panel title="Deploys that were seen" isFlush>
            <DeployTable deploys={deploys} />
          </Panel>
          <Pager
            first={before === undefined ? undefined : withQuery(url, { before: undefined })}
            older={last && withQuery(url, { before: String(last.id) })}
          />
        </>
      ),
    });
  };
}

function Address({ id, address, of }: Readonly<{ id: string; address: string; of: string }>) {
  return (
    <>
      <code id={id}>{address}</code>
      <CopyButton of={id} label={`Copy the address of ${of}`} />
    </>
  );
}

function Deployed({ deployedAtMs, nowMs }: Readonly<{ deployedAtMs: number; nowMs: number }>) {
  return (
    <>
      <Time atMs={deployedAtMs} />
      <span class="soft">
        <Ago atMs={deployedAtMs} nowMs={nowMs} />
      </span>
    </>
  );
}

function DeployTable({ deploys }: Readonly<{ deploys: readonly SeenDeploy[] }>) {
  return (
    <Table
      caption="Deploys that were seen"
      columns={[
        { label: 'Deploy slot', isRowHead: true, cell: ({ deploySlot }) => countText(deploySlot) },
        {
          label: 'Slot before',
          align: 'end',
          cell: ({ previousSlot }) => (previousSlot === null ? '–' : countText(previousSlot)),
        },
        {
          label: 'Deployed',
          cell: ({ deployedAtMs }) => (deployedAtMs === null ? 'not known' : <Time atMs={deployedAtMs} />),
        },
        { label: 'Seen', cell: ({ detectedAtMs }) => <Time atMs={detectedAtMs} /> },
        {
          label: 'Authority',
          cell: ({ id, authority }) =>
            authority === null ? (
              <span class="soft">none</span>
            ) : (
              <ShortAddress id={`by-${id}`} address={authority} of={`the authority of deploy ${id}`} />
            ),
        },
      ]}
      rows={deploys}
      keyOf={({ id }) => id}
      empty={
        <Empty title="No deploys yet">
          <p>The first reading of a program that can be deployed is the first line here.</p>
        </Empty>
      }
    />
  );
}
