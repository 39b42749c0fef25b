/** @jsxImportSource preact */
import { ATTEMPTS_MAX } from '../../../delivery/schedule.ts';
import type { AccountDelivery } from '../../../outbox/account-deliveries.ts';
import type { PageAccount } from '../../context.ts';
import { Empty } from '../../components/panels.tsx';
import { DrawerLink } from '../../components/links.tsx';
import { Ago, countText, latencyText, Time } from '../../components/format.tsx';
import { type Column, Table } from '../../components/table.tsx';
import { DeliveryBadge, wordOf } from './outcome.tsx';
import { deliveryPath } from '../../paths.ts';

type DeliveryTableProps = Readonly<{
  account: Pick<PageAccount, 'id'>;
  rows: readonly AccountDelivery[];
  nowMs: number;
  /** All are of one webhook, which need not be named. */
  isOfOneWebhook?: boolean;
  /** Said in place of an empty table. */
  empty: string;
}>;

/** Deliveries, each opening at the side. */
export function DeliveryTable({ account, rows, nowMs, isOfOneWebhook = false, empty }: DeliveryTableProps) {
  const webhook: Column<AccountDelivery> = {
    label: 'Webhook',
    cell: ({ url }) => <Host host={new URL(url).host} />,
  };
  return (
    <Table
      caption="Deliveries"
      columns={[
        {
          label: 'Created',
          isRowHead: true,
          cell: ({ id, createdAtMs }) => (
            <DrawerLink to={deliveryPath(account, id)}>
              <Time atMs={createdAtMs} />
            </DrawerLink>
          ),
        },
        { label: 'Event', cell: (row) => <Event row={row} /> },
        ...(isOfOneWebhook ? [] : [webhook]),
        { label: 'State', cell: (row) => <State row={row} nowMs={nowMs} /> },
        { label: 'Last answer', align: 'end', cell: (row) => <Answer row={row} /> },
      ]}
      rows={rows}
      keyOf={({ id }) => id}
      empty={<Empty title={empty} />}
    />
  );
}

/** A host on one line; the whole of a long one is in its tooltip. */
function Host({ host }: Readonly<{ host: string }>) {
  return (
    <span class="host" title={host}>
      {host}
    </span>
  );
}

function State({ row, nowMs }: Readonly<{ row: AccountDelivery; nowMs: number }>) {
  const { state, nextAttemptAtMs, resendAtMs } = row;
  return (
    <span class="badges">
      <DeliveryBadge state={state} />
      {state === 'retry_scheduled' && nextAttemptAtMs !== null && (
        <span class="soft">
          {nextAttemptAtMs > nowMs ? <Ago atMs={nextAttemptAtMs} nowMs={nowMs} /> : 'now'}
        </span>
      )}
      {resendAtMs !== null && <span class="soft">resend queued</span>}
    </span>
  );
}

function Event({ row: { eventKind, label, deploySlot } }: Readonly<{ row: AccountDelivery }>) {
  if (label === null) return <code>{eventKind}</code>;
  return (
    <span class="lines">
      {label}
      <span class="soft nowrap">
        {deploySlot === null ? eventKind : `upgraded, slot ${countText(deploySlot)}`}
      </span>
    </span>
  );
}

function Answer({ row }: Readonly<{ row: AccountDelivery }>) {
  return (
    <span class="lines">
      {answerText(row)}
      <span class="soft">
        attempt {row.attempts}/{ATTEMPTS_MAX}
      </span>
    </span>
  );
}

/** `503 in 240 ms`, `timeout in 10.0 s`. */
function answerText({ lastStatus, lastError, tookMs }: AccountDelivery): string {
  const word = lastStatus ?? (lastError === null ? undefined : wordOf(lastError));
  if (word === undefined) return '–';
  return tookMs === null ? String(word) : `${word} in ${latencyText(Math.max(0, tookMs))}`;
}
