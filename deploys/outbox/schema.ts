import type { Migrations } from '../../shared/store/open.ts';

/**
 * Webhooks and what is sent to them. Instants are Unix milliseconds.
 *
 * `webhooks`: `host` is the URL's host name, by which attempts are capped. `programs_json` is a JSON array of addresses,
 * or null for all programs. Secrets are sealed, each under the key that its `_kid` names; the next one takes over at
 * `next_secret_at_ms`. `failing_since_ms` and the count are of automatic attempts. A deleted webhook stays as a row
 * until its deliveries are gone.
 *
 * `events`: deploys that webhooks want. `created_at_ms` is when it was detected, `released_at_ms` when its block time
 * became known and its deliveries got bodies.
 *
 * `deliveries`: the queue itself. `account_id` is its webhook's, which never changes. `body` is the exact bytes of every
 * attempt. `attempts` counts automatic attempts; `next_attempt_at_ms` is when the next of them is due, `resend_at_ms` when
 * a manual one is, `due_at_ms` the earlier of both. During an attempt the row is leased, and only the holder of
 * `lease_token` may record how it ended.
 *
 * `attempts`: one POST each. `n` counts all of a delivery's, `number` the automatic ones from 1 to 6.
 */
export const OUTBOX_MIGRATIONS: Migrations = {
  'webhooks-1': `
    CREATE TABLE webhooks (
      id TEXT PRIMARY KEY,
      account_id INTEGER NOT NULL,
      url TEXT NOT NULL,
      host TEXT NOT NULL,
      description TEXT NOT NULL DEFAULT '',
      programs_json TEXT CHECK (json_valid(programs_json)),
      secret_ct BLOB NOT NULL,
      secret_kid INTEGER NOT NULL,
      next_secret_ct BLOB,
      next_secret_kid INTEGER,
      next_secret_at_ms INTEGER,
      failing_since_ms INTEGER,
      consecutive_failures INTEGER NOT NULL DEFAULT 0,
      last_success_at_ms INTEGER,
      created_at_ms INTEGER NOT NULL,
      updated_at_ms INTEGER NOT NULL,
      paused_at_ms INTEGER,
      deleted_at_ms INTEGER,
      CHECK ((next_secret_ct IS NULL) = (next_secret_kid IS NULL)),
      CHECK ((next_secret_ct IS NULL) = (next_secret_at_ms IS NULL))
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX webhooks_of_account ON webhooks (account_id, created_at_ms) WHERE deleted_at_ms IS NULL;
    CREATE TABLE events (
      id INTEGER PRIMARY KEY,
      dedupe_key TEXT NOT NULL UNIQUE,
      program_id TEXT NOT NULL,
      label TEXT NOT NULL,
      previous_slot INTEGER NOT NULL,
      deploy_slot INTEGER NOT NULL,
      created_at_ms INTEGER NOT NULL,
      released_at_ms INTEGER
    ) STRICT;
    CREATE INDEX events_waiting ON events (deploy_slot) WHERE released_at_ms IS NULL;
  `,
  // A kind of events more needs a column with its own CHECK in place of event_kind (add, copy, drop, rename), in a migration of its own:
  // dropping the table would empty attempts, whose rows go with their delivery.
  'webhooks-2': `
    CREATE TABLE deliveries (
      id TEXT PRIMARY KEY,
      webhook_id TEXT NOT NULL REFERENCES webhooks (id),
      event_id INTEGER REFERENCES events (id),
      event_kind TEXT NOT NULL CHECK (event_kind IN ('program.upgraded', 'ping')),
      dedupe_key TEXT NOT NULL,
      body BLOB,
      state TEXT NOT NULL CHECK (state IN
        ('queued', 'attempting', 'retry_scheduled', 'delivered', 'failed', 'skipped', 'cancelled')),
      attempts INTEGER NOT NULL DEFAULT 0 CHECK (attempts BETWEEN 0 AND 6),
      next_attempt_at_ms INTEGER,
      resend_at_ms INTEGER,
      lease_token TEXT,
      lease_until_ms INTEGER,
      last_status INTEGER,
      last_error TEXT,
      created_at_ms INTEGER NOT NULL,
      finished_at_ms INTEGER,
      due_at_ms INTEGER GENERATED ALWAYS AS (
        CASE WHEN lease_token IS NULL AND body IS NOT NULL
        THEN min(coalesce(next_attempt_at_ms, resend_at_ms), coalesce(resend_at_ms, next_attempt_at_ms)) END
      ) VIRTUAL,
      UNIQUE (webhook_id, dedupe_key),
      CHECK ((lease_token IS NULL) = (lease_until_ms IS NULL)),
      CHECK (state != 'attempting' OR lease_token IS NOT NULL),
      CHECK ((next_attempt_at_ms IS NOT NULL) = (state IN ('queued', 'retry_scheduled'))),
      CHECK ((finished_at_ms IS NOT NULL) = (state IN ('delivered', 'failed', 'skipped', 'cancelled')))
    ) STRICT;
    CREATE INDEX deliveries_due ON deliveries (due_at_ms) WHERE due_at_ms IS NOT NULL;
    CREATE INDEX deliveries_leased ON deliveries (lease_until_ms) WHERE lease_token IS NOT NULL;
    CREATE INDEX deliveries_recent ON deliveries (webhook_id, created_at_ms DESC, id);
    CREATE INDEX deliveries_of_event ON deliveries (event_id) WHERE event_id IS NOT NULL;
    CREATE INDEX deliveries_old ON deliveries (created_at_ms);
    CREATE TABLE attempts (
      delivery_id TEXT NOT NULL REFERENCES deliveries (id) ON DELETE CASCADE,
      n INTEGER NOT NULL,
      number INTEGER CHECK (number BETWEEN 1 AND 6),
      trigger TEXT NOT NULL CHECK (trigger IN ('auto', 'manual')),
      state TEXT NOT NULL CHECK (state IN ('started', 'succeeded', 'failed', 'interrupted', 'blocked')),
      url TEXT NOT NULL,
      started_at_ms INTEGER NOT NULL,
      signed_at INTEGER,
      request_headers_json TEXT,
      ended_at_ms INTEGER,
      status INTEGER,
      error TEXT,
      detail TEXT,
      remote_address TEXT,
      phases_json TEXT,
      answer_headers_json TEXT,
      answer_body BLOB,
      answer_body_kind TEXT CHECK (answer_body_kind IN ('whole', 'cut', 'incomplete')),
      PRIMARY KEY (delivery_id, n),
      CHECK ((number IS NOT NULL) = (trigger = 'auto')),
      CHECK ((ended_at_ms IS NULL) = (state = 'started'))
    ) STRICT, WITHOUT ROWID;
    CREATE UNIQUE INDEX attempts_under_way ON attempts (delivery_id) WHERE state = 'started';
    CREATE UNIQUE INDEX attempts_automatic ON attempts (delivery_id, number) WHERE number IS NOT NULL;
    CREATE INDEX attempts_kept ON attempts (started_at_ms) WHERE answer_body IS NOT NULL;
  `,
  'webhooks-3': `
    DROP INDEX deliveries_due;
    CREATE INDEX deliveries_due ON deliveries (due_at_ms, webhook_id) WHERE due_at_ms IS NOT NULL;
    CREATE INDEX webhooks_on_host ON webhooks (host);
    CREATE INDEX events_old ON events (created_at_ms);
    CREATE INDEX webhooks_deleted ON webhooks (deleted_at_ms) WHERE deleted_at_ms IS NOT NULL;
  `,
  'attempts-wrong-1': `
    CREATE INDEX attempts_failed ON attempts (started_at_ms) WHERE state = 'failed';
    CREATE INDEX attempts_blocked ON attempts (started_at_ms) WHERE state = 'blocked';
  `,
  'deliveries-of-account-1': `
    ALTER TABLE deliveries ADD COLUMN account_id INTEGER NOT NULL DEFAULT 0;
    UPDATE deliveries SET account_id = (SELECT account_id FROM webhooks WHERE id = webhook_id);
    CREATE INDEX deliveries_of_account ON deliveries (account_id, created_at_ms DESC, id);
  `,
  'deliveries-recent-2': `
    DROP INDEX deliveries_recent;
    CREATE INDEX deliveries_recent ON deliveries (webhook_id, created_at_ms DESC, id, state);
  `,
  'webhook-idempotency-1': `
    CREATE TABLE webhook_idempotency (
      account_id INTEGER NOT NULL,
      key_hash BLOB NOT NULL,
      settings_hash BLOB NOT NULL,
      webhook_id TEXT NOT NULL,
      created_at_ms INTEGER NOT NULL,
      PRIMARY KEY (account_id, key_hash)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX webhook_idempotency_old ON webhook_idempotency (created_at_ms);
  `,
  'webhooks-failing-1': `
    CREATE INDEX webhooks_failing ON webhooks (failing_since_ms, id)
      WHERE failing_since_ms IS NOT NULL AND deleted_at_ms IS NULL;
  `,
};
