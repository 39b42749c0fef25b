/** @jsxImportSource preact */
import { Chart, Sparkline } from '../../../deploys/console/components/charts.tsx';
import { CodeBlock, SecretBox, ShortAddress } from '../../../deploys/console/components/code.tsx';
import { Ago, Time } from '../../../deploys/console/components/format.tsx';
import {
  ButtonLink,
  Buttons,
  CheckField,
  ConfirmPanel,
  Filters,
  PostForm,
  RadioFields,
  SelectField,
  Submit,
  TextField,
} from '../../../deploys/console/components/forms.tsx';
import { Badge, Notice, TONES } from '../../../deploys/console/components/icons.tsx';
import { DrawerLink, Link, Pager, Tabs } from '../../../deploys/console/components/links.tsx';
import { Columns, Empty, Facts, Live, Panel, Stats } from '../../../deploys/console/components/panels.tsx';
import { Table } from '../../../deploys/console/components/table.tsx';
import type { AccountContext } from '../../../deploys/console/context.ts';
import { forAccount, type Route } from '../../../deploys/console/router.ts';

const HOUR_MS = 3_600_000;
const METHODS = ['getAccountInfo', 'getProgramAccounts', 'getMultipleAccounts', 'sendTransaction'];
const PROGRAMS = [
  ['Jupiter v6', 'JUP6LkbZbjS1jKKwapdHNy74zcZ3tLUZoi5QNyVTaV4', 'good', 'upgradeable'],
  ['Raydium CLMM', 'CAMMCzo5YL8w4VFF8KVHrK22GGUsp5VTaW7grrKgrWqK', 'quiet', 'frozen'],
  ['Orca Whirlpool', 'whirLbMiicVdio4qvUfM5KAg6Ct8VwpYzGff3uctyCc', 'bad', 'missing'],
] as const;

/** One page with every part that pages are made of, and one for the drawer. */
export const GALLERY: readonly Route[] = [
  forAccount('/accounts/:accountId/webhooks', { get: galleryPage }),
  forAccount('/accounts/:accountId/deliveries/1', {
    get: ({ show }) =>
      show({
        title: 'Delivery 1',
        crumbs: [{ label: 'Deliveries', to: '/accounts/7/deliveries' }],
        body: <Facts facts={[['State', <Badge tone="good">delivered</Badge>]]} />,
      }),
  }),
];

function galleryPage({ show, url, nowMs }: AccountContext): Response {
  return show({
    title: 'Webhooks',
    crumbs: [{ label: 'acme', to: '/accounts/7/overview' }],
    aside: (
      <>
        <ButtonLink to="/accounts/7/webhooks">Send test</ButtonLink>
        <ButtonLink to="/accounts/7/webhooks/new" kind="primary">
          Add webhook
        </ButtonLink>
      </>
    ),
    body: (
      <>
        <Tabs
          label="Views"
          tabs={[
            { label: 'All', to: '/accounts/7/webhooks', isCurrent: true },
            { label: 'Failing', to: '/accounts/7/webhooks?state=failing', isCurrent: false },
          ]}
        />
        <Figures nowMs={nowMs} />
        <Lists nowMs={nowMs} here={url.pathname} />
        <Charts nowMs={nowMs} />
        <Columns>
          <Forms />
          <Texts nowMs={nowMs} />
        </Columns>
        <ConfirmPanel
          title="Delete this webhook"
          action="/accounts/7/webhooks"
          phrase="hooks.example.com"
          button="Delete this webhook"
          errors={{ confirm: 'That is not hooks.example.com.' }}
        >
          Deliveries that wait are given up, and its history goes with it. This cannot be undone.
        </ConfirmPanel>
      </>
    ),
  });
}

function Figures({ nowMs }: Readonly<{ nowMs: number }>) {
  return (
    <>
      <Notice tone="bad">
        <p>
          <strong>
            Failing since <Time atMs={nowMs - 5 * HOUR_MS} />.
          </strong>{' '}
          The receiver answered 503. The next attempt is <Ago atMs={nowMs + 240_000} nowMs={nowMs} />.
        </p>
      </Notice>
      <Stats
        stats={[
          { label: 'Credits left', value: '182,340', note: 'about 3 days at the pace of the last 24 h' },
          { label: 'Requests, last hour', value: '48,201', note: <Line label="Requests by minute" /> },
          { label: 'Refused, last hour', value: '312', note: '0.6 % of all', tone: 'warning' },
          { label: 'Latency, median', value: '38 ms', note: '95 % within 250 ms' },
        ]}
      />
    </>
  );
}

function Line({ label }: Readonly<{ label: string }>) {
  return <Sparkline values={[3, 5, 2, 8, 9, 4, 6, 12, 7, 5, 9]} label={label} />;
}

function Lists({ nowMs, here }: Readonly<{ nowMs: number; here: string }>) {
  return (
    <>
      <Filters path={here} isFiltered>
        <TextField name="q" label="Search" type="search" placeholder="Name or address" />
        <SelectField
          name="state"
          label="State"
          value="failed"
          options={[
            { value: '', label: 'All' },
            { value: 'failed', label: 'Failed' },
          ]}
        />
      </Filters>
      <Live id="programs" from={here}>
        <Panel title="Programs" isFlush aside={<Badge tone="waiting">live</Badge>}>
          <Table
            caption="Programs"
            columns={[
              ['Program', ([name]) => <DrawerLink to="/accounts/7/deliveries/1">{name}</DrawerLink>, 'head'],
              [
                'Address',
                ([name, address]) => <ShortAddress id={`a-${address}`} address={address} of={name} />,
              ],
              ['Status', ([, , tone, status]) => <Badge tone={tone}>{status}</Badge>],
              ['Deployed', () => <Time atMs={nowMs - HOUR_MS} />],
              ['24 h', ([name]) => <Line label={`Deliveries of ${name}`} />],
              ['Slot', () => '381,220,114', 'end'],
            ]}
            rows={PROGRAMS}
            keyOf={([, address]) => address}
            empty={<Empty title="No programs" />}
          />
        </Panel>
      </Live>
      <Pager first={`${here}?before=2`} older={`${here}?after=9`} />
      <Panel title="Deliveries" isFlush>
        <Table
          caption="Deliveries"
          columns={[['Event', () => '']]}
          rows={[]}
          keyOf={() => ''}
          empty={
            <Empty title="No deliveries yet">
              <p>A delivery appears here as soon as a watched program is deployed.</p>
              <ButtonLink to="/accounts/7/webhooks">Send a test</ButtonLink>
            </Empty>
          }
        />
      </Panel>
    </>
  );
}

function Charts({ nowMs }: Readonly<{ nowMs: number }>) {
  const startMs = nowMs - (nowMs % HOUR_MS) - 47 * HOUR_MS;
  const timesMs = Array.from({ length: 48 }, (_, i) => startMs + i * HOUR_MS);
  const wave = (i: number, n: number) =>
    Math.round(2_000 * (n + 1) + 1_500 * Math.sin(i / (4 + n)) + (i % 5) * 90);
  const series = METHODS.map((label, n) => ({ label, values: timesMs.map((_, i) => wave(i, n)) }));
  return (
    <Columns>
      <Panel title="Calls by method">
        <Chart
          id="calls"
          title="Calls by method"
          kind="stacked"
          timesMs={timesMs}
          series={series}
          unit="calls an hour"
        />
      </Panel>
      <Panel title="Latency">
        <Chart
          id="latency"
          title="Latency"
          kind="line"
          timesMs={timesMs}
          series={series.slice(0, 2)}
          unit="ms"
        />
      </Panel>
    </Columns>
  );
}

function Forms() {
  return (
    <Panel title="Settings">
      <PostForm
        action="/accounts/7/webhooks"
        errors={{ url: 'The URL must begin with https://.' }}
        label="Settings"
      >
        <TextField
          name="url"
          label="URL"
          value="http://hooks.example.com/solana"
          isRequired
          isCode
          hint="Reachable from the public internet."
          error="The URL must begin with https://."
        />
        <RadioFields
          name="programs"
          legend="Programs"
          value="all"
          options={[
            { value: 'all', label: 'All programs', hint: 'Also those that are added later.' },
            { value: 'some', label: 'Chosen programs' },
          ]}
        />
        <CheckField name="active" value="on" label="Send events at once" isChecked />
        <Buttons>
          <Submit kind="primary">Save</Submit>
          <Submit kind="danger">Revoke</Submit>
          <Link to="/accounts/7/webhooks">Cancel</Link>
        </Buttons>
      </PostForm>
    </Panel>
  );
}

function Texts({ nowMs }: Readonly<{ nowMs: number }>) {
  return (
    <Panel title="Details">
      <SecretBox name="signing secret" secret="whsec_3f9Qm2vT8bLx5RwYc7KdJn1pZs6HgEa4" />
      <Facts
        facts={[
          ['Created', <Time atMs={nowMs} />],
          ['State', TONES.map((tone) => <Badge tone={tone}>{tone}</Badge>)],
        ]}
      />
      <CodeBlock
        id="curl"
        label="Request as curl"
        text={
          "curl -X POST 'https://hooks.example.com/solana' \\\n  -H 'content-type: application/json' \\\n  -d '{\"type\":\"ping\"}'"
        }
      />
    </Panel>
  );
}
