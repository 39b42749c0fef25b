import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hashOf, keyIdOf, readApiKey } from '../../shared/keys/api-key.ts';
import { DEMO } from '../../shared/keys/demo.ts';
import { tighten } from '../../shared/store/private.ts';
import { type Books, COMMAND_LINE } from '../books.ts';

/** A demonstration that is refused after five calls a second would show nothing but refusals. */
const DEMO_PLAN = 'pro';
/** The one key that is kept in the clear, readable by the owner alone. */
const DEMO_KEY_FILE = 'demo-key';

/** `name-taken`: the account of the demo's name is somebody else's. */
type Demo = { readonly kind: 'key'; readonly key: string } | { readonly kind: 'name-taken' };

/** The demo account's key: the one of the last start while it is good, else a new one. */
export function demoKey({ config, accounts, keys }: Pick<Books, 'config' | 'accounts' | 'keys'>): Demo {
  const file = join(config.storage.dataDir, DEMO_KEY_FILE);
  tighten(file);
  const kept = existsSync(file) ? readApiKey(readFileSync(file, 'utf8').trim()) : undefined;
  if (kept !== undefined) {
    const row = keys.find(keyIdOf(hashOf(kept)));
    if (row?.state === 'active' && row.account === DEMO) return { kind: 'key', key: kept };
  }
  if (accounts.own(DEMO, DEMO_PLAN, COMMAND_LINE).kind === 'name-taken') return { kind: 'name-taken' };
  const created = keys.create(DEMO, DEMO, COMMAND_LINE);
  if (created.kind !== 'created') throw new Error(`the demo key could not be made: ${created.kind}`);
  writeFileSync(file, `${created.made.key}\n`, { mode: 0o600 });
  return { kind: 'key', key: created.made.key };
}
