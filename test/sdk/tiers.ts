import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../shared/keys/schema.ts';
import { startDas } from '../fakes/das.ts';
import { addKey, opened, temporaryFolder } from '../started/gateway.ts';
import { ROOT, startProcess } from '../started/process.ts';

const ROOTED_LAG = 4;
/** A busy machine makes calls and probes late; no backend lags behind the others, which are the same chain. */
const PATIENT =
  'probe_seconds = 60\nmax_lag_slots = 10_000\n[deadlines]\nlight = 60\nhistory = 60\nsend = 60\n';

/**
 * A started gateway in front of tiers: a real localnet as the nodes for state and scans, for history and for sends,
 * and a DAS server for assets. `extra` is more of the gateway's TOML. The usual slots are quick enough to wait for.
 */
export async function startTiers(extra = '', slotMs = 50) {
  const folder = temporaryFolder();
  const storage = `[storage]\ndata_dir = "${folder.path}"\n`;
  const das = startDas();
  const chainConfig = join(folder.path, 'chain.toml');
  writeFileSync(
    chainConfig,
    `${storage}[localnet]\nlisten = "127.0.0.1:0"\nslot_ms = ${slotMs}\nrooted_lag = ${ROOTED_LAG}\n`,
  );
  const chain = await startProcess([join(ROOT, 'localnet/main.ts'), '--config', chainConfig], folder.path);
  const backend = (name: string, url: string, lanes: readonly string[], methods: readonly string[] = []) =>
    `[[backends]]\nname = "${name}"\nurl = "${url}"\nlanes = ${JSON.stringify(lanes)}\n` +
    `methods = ${JSON.stringify(methods)}\n`;
  const gatewayConfig = join(folder.path, 'gateway.toml');
  writeFileSync(
    gatewayConfig,
    `${storage}[gateway]\nlisten = "127.0.0.1:0"\nmetrics = "127.0.0.1:0"\n` +
      PATIENT +
      backend('node', chain.url.href, ['state', 'scan']) +
      backend('archive', chain.url.href, ['archive']) +
      backend('sender', chain.url.href, ['send'], ['requestAirdrop']) +
      `[[backends]]\nname = "das"\nurl = "${das.url}"\nprofile = "das"\n` +
      extra,
  );
  const gateway = await startProcess([join(ROOT, 'gateway/main.ts'), '--config', gatewayConfig], folder.path);

  /** Makes an account on `plan` and gives a key of it. */
  function key(plan = 'scale', credits = 0): string {
    const accounts = opened(join(folder.path, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
    const made = addKey(accounts, plan, credits);
    accounts.close();
    return made;
  }

  return {
    url: gateway.url.href,
    chainUrl: chain.url.href,
    das,
    key,
    /** The endpoint with a key of a new account in it, as SDKs take it. */
    endpoint: (plan = 'scale', credits = 0) => `${gateway.url.href}?api-key=${key(plan, credits)}`,
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      await chain[Symbol.asyncDispose]();
      await das[Symbol.asyncDispose]();
      folder[Symbol.dispose]();
    },
  };
}
