import { join } from 'node:path';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../shared/keys/schema.ts';
import { addKey, JSON_HEADERS, opened, temporaryFolder } from '../started/gateway.ts';
import { startProcess } from '../started/process.ts';
import { CALL, crewConfig, type CrewOptions } from './gateway-crew.ts';

/** A gateway as a process of its own, with its accounts as another process sees them. */
export async function startAlone(backendUrl: string, more: Partial<CrewOptions> = {}, limits = '') {
  const folder = temporaryFolder();
  const { args, path, metricsPort } = crewConfig(folder.path, { backendUrl, processes: 1, ...more });
  const accounts = opened(join(folder.path, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
  const started = await startProcess(args, folder.path, {}, limits);
  const post = (key: string) =>
    fetch(started.url, { method: 'POST', body: CALL, headers: { ...JSON_HEADERS, 'x-token': key } });
  return {
    ...started,
    folder: folder.path,
    config: path,
    metricsUrl: new URL(`http://127.0.0.1:${metricsPort}/metrics`),
    accounts,
    post,
    status: async (key: string) => (await post(key)).status,
    key: (plan = 'scale', credits = 0) => addKey(accounts, plan, credits),
    /** What /health says, with its status. */
    async health(): Promise<string> {
      const response = await fetch(new URL('/health', started.url));
      return `${response.status} ${(await response.text()).trim()}`;
    },
    async [Symbol.asyncDispose]() {
      accounts.close();
      await started[Symbol.asyncDispose]();
      folder[Symbol.dispose]();
    },
  };
}
