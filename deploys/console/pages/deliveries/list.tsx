/** @jsxImportSource preact */
import { type DeliveryPage, type DeliveryWish, ID_PART_MIN } from '../../../outbox/account-deliveries.ts';
import type { AskedOfAccount, Page } from '../../context.ts';
import { Filters, SelectField, TextField } from '../../components/forms.tsx';
import { Live, Panel } from '../../components/panels.tsx';
import { Pager, withQuery } from '../../components/links.tsx';
import type { WebhookPageDeps } from '../../page-services.ts';
import { DeliveryTable } from './delivery-table.tsx';
import { STATE_WORDS } from './outcome.tsx';
import { deliveriesPath } from '../../paths.ts';
import { cursorOf, EVENTS, isNarrow, SPANS, STATES, wishFrom } from './wish.ts';

/** The deliveries of all webhooks of an account, or those that are looked for. */
export function deliveryListPage(deps: WebhookPageDeps): Page<AskedOfAccount> {
  return function deliveryList(asked) {
    const { account, nowMs, url, show } = asked;
    const wish = wishFrom(url.searchParams, nowMs);
    const search = (url.searchParams.get('q') ?? '').trim();
    const { rows, next } =
      search === '' ? deps.deliveries.page(account.id, wish) : found(deps, account.id, search);
    const isFirst = wish.after === undefined;
    const table = (
      <Panel title={search === '' ? 'Newest first' : 'Found'} isFlush>
        <DeliveryTable
          account={account}
          rows={rows}
          nowMs={nowMs}
          isOfOneWebhook={wish.webhookId !== undefined}
          empty={emptyText(search, wish, next)}
        />
      </Panel>
    );
    return show({
      title: 'Deliveries',
      body: (
        <>
          <DeliveryFilters deps={deps} asked={asked} wish={wish} search={search} />
          {isFirst ? (
            <Live id="deliveries" from={withQuery(url, {})}>
              {table}
            </Live>
          ) : (
            table
          )}
          <Pager
            first={isFirst ? undefined : withQuery(url, { after: undefined })}
            older={next && withQuery(url, { after: cursorOf(next) })}
          />
        </>
      ),
    });
  };
}

function found({ deliveries }: WebhookPageDeps, accountId: number, search: string): DeliveryPage {
  return { rows: deliveries.search(accountId, search), next: undefined };
}

function emptyText(search: string, wish: DeliveryWish, next: DeliveryPage['next']): string {
  if (search !== '')
    return search.length < ID_PART_MIN
      ? `Type at least ${ID_PART_MIN} characters of an id`
      : 'No delivery has an id that begins so';
  if (next !== undefined) return 'None among these; there may be older ones';
  return isNarrow(wish) || wish.after ? 'No delivery fits' : 'No deliveries yet';
}

type FiltersProps = Readonly<{
  deps: WebhookPageDeps;
  asked: AskedOfAccount;
  wish: DeliveryWish;
  search: string;
}>;

function DeliveryFilters({ deps, asked, wish, search }: FiltersProps) {
  const { account, nowMs, url } = asked;
  const webhooks = deps.webhooks
    .list(account.id)
    .map(({ id, url: to }) => ({ value: id, label: new URL(to).host }));
  const programs = deps.programs({}, nowMs).map(({ programId, label }) => ({ value: programId, label }));
  const all = (label: string) => ({ value: '', label });
  return (
    <Filters path={deliveriesPath(account)} isFiltered={isNarrow(wish) || search !== ''}>
      <TextField
        name="q"
        label="Delivery id"
        type="search"
        value={search}
        placeholder="First 8 or more"
        isCode
      />
      <SelectField
        name="state"
        label="State"
        value={wish.state ?? ''}
        options={[all('Any'), ...STATES.map((value) => ({ value, label: STATE_WORDS[value][0] }))]}
      />
      <SelectField
        name="event"
        label="Event"
        value={wish.eventKind ?? ''}
        options={[all('Any'), ...EVENTS.map((value) => ({ value, label: value }))]}
      />
      <SelectField
        name="webhook"
        label="Webhook"
        value={wish.webhookId ?? ''}
        options={[all('Any'), ...webhooks]}
      />
      <SelectField
        name="program"
        label="Program"
        value={wish.programId ?? ''}
        options={[all('Any'), ...programs]}
      />
      <SelectField
        name="time"
        label="Time"
        value={url.searchParams.get('time') ?? ''}
        options={[all('Any'), ...SPANS]}
      />
    </Filters>
  );
}
