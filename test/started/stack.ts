import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../shared/keys/schema.ts';
import { addKey, opened, temporaryFolder } from './gateway.ts';
import { ROOT, startProcess } from './process.ts';

type StackOptions = Readonly<{
  /** The usual slots are quick enough to wait for, and slow enough for several transactions to share one. */
  slotMs?: number;
  /** The gateway's TOML behind its listeners, for a chain at this address; one backend and a slow plan without it. */
  gatewayLines?: (chainUrl: string) => string;
}>;

const ROOTED_LAG = 4;
const oneBackend = (url: string) =>
  `[[backends]]\nname = "localnet"\nurl = "${url}"\nmethods = ["requestAirdrop"]\n[plans.slow]\nrps = 1\nburst = 1\n`;

/** A real localnet and a real gateway in front of it, as processes of their own, with keys to use them. */
export async function startStack({ slotMs = 100, gatewayLines = oneBackend }: StackOptions = {}) {
  const folder = temporaryFolder();
  const chainConfig = join(folder.path, 'chain.toml');
  const storage = `[storage]\ndata_dir = "${folder.path}"\n`;
  writeFileSync(
    chainConfig,
    `${storage}[localnet]\nlisten = "127.0.0.1:0"\nslot_ms = ${slotMs}\nrooted_lag = ${ROOTED_LAG}\n`,
  );
  const chain = await startProcess([join(ROOT, 'localnet/main.ts'), '--config', chainConfig], folder.path);
  const gatewayConfig = join(folder.path, 'gateway.toml');
  writeFileSync(
    gatewayConfig,
    `${storage}[gateway]\nlisten = "127.0.0.1:0"\nmetrics = "127.0.0.1:0"\n${gatewayLines(chain.url.href)}`,
  );
  const gateway = await startProcess([join(ROOT, 'gateway/main.ts'), '--config', gatewayConfig], folder.path);

  return {
    url: gateway.url,
    chainUrl: chain.url,
    /** Makes an account on `plan` and gives a key of it. */
    key(plan: string, credits = 0): string {
      const accounts = opened(join(folder.path, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
      const key = addKey(accounts, plan, credits);
      accounts.close();
      return key;
    },
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      await chain[Symbol.asyncDispose]();
      folder[Symbol.dispose]();
    },
  };
}

/** Asks until the answer is one; the test's own timeout bounds it. */
export async function until<T>(ask: () => Promise<T | undefined | null | false>): Promise<T> {
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== null && answer !== false) return answer;
    await Bun.sleep(20); // between two questions to a chain that moves by itself
  }
}
