import { join } from 'node:path';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../shared/keys/schema.ts';
import { addKey, JSON_HEADERS, opened, temporaryFolder } from '../started/gateway.ts';
import { startProcess } from '../started/process.ts';
import { CALL, crewConfig } from './gateway-crew.ts';

/** A gateway as a process of its own, with its accounts as another process sees them. */
export async function startAlone(backendUrl: string) {
  const folder = temporaryFolder();
  const { args, path } = crewConfig(folder.path, { backendUrl, processes: 1 });
  const accounts = opened(join(folder.path, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
  const started = await startProcess(args, folder.path);
  const post = (key: string) =>
    fetch(started.url, { method: 'POST', body: CALL, headers: { ...JSON_HEADERS, 'x-token': key } });
  return {
    ...started,
    folder: folder.path,
    config: path,
    accounts,
    post,
    status: async (key: string) => (await post(key)).status,
    key: () => addKey(accounts, 'scale'),
    async [Symbol.asyncDispose]() {
      accounts.close();
      await started[Symbol.asyncDispose]();
      folder[Symbol.dispose]();
    },
  };
}
