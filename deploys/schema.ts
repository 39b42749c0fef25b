import type { Migrations } from '../shared/store/open.ts';
import { AUDIT_MIGRATIONS } from './accounts/audit.ts';
import { USERS_MIGRATIONS } from './auth/users.ts';
import { OUTBOX_MIGRATIONS } from './outbox/schema.ts';
import { WATCH_MIGRATIONS } from './watch/readings.ts';

/** All tables of this app beside those of accounts and keys, in the order in which they came. */
export const DEPLOYS_MIGRATIONS: Migrations = {
  ...WATCH_MIGRATIONS,
  ...OUTBOX_MIGRATIONS,
  ...AUDIT_MIGRATIONS,
  ...USERS_MIGRATIONS,
};
