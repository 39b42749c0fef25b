import type { Clock } from '../../shared/clock.ts';
import type { Store } from '../../shared/store/open.ts';
import type { Audit } from '../audit/audit.ts';
import type { WebhookRows } from './webhook.ts';

/** What every verb on webhooks needs. */
export type WebhookDeps = Readonly<{
  store: Store;
  rows: WebhookRows;
  clock: Clock;
  audit: Pick<Audit, 'note'>;
}>;
