import { expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROGRAMS_PATH } from '../../deploys/api/programs.ts';
import type { ProgramsAnswer } from '../../deploys/api/schema.ts';
import { upgradeProgram } from '../../localnet/upgrade.ts';
import { systemClock } from '../../shared/clock.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../shared/keys/schema.ts';
import { addKey, opened, temporaryFolder } from '../started/gateway.ts';
import { ROOT, startProcess } from '../started/process.ts';

const POLL_SECONDS = 1;

test('a program that is redeployed on a real chain has its new slot and time on the API (§3)', async () => {
  using folder = temporaryFolder();
  const storage = `[storage]\ndata_dir = "${folder.path}"\n`;
  const [chainConfig, config] = [join(folder.path, 'chain.toml'), join(folder.path, 'deploys.toml')];
  writeFileSync(chainConfig, `${storage}[localnet]\nlisten = "127.0.0.1:0"\nslot_ms = 50\nrooted_lag = 2\n`);
  await using chain = await startProcess(
    [join(ROOT, 'localnet/main.ts'), '--config', chainConfig],
    folder.path,
  );
  writeFileSync(
    config,
    `${storage}[deploys]\nlisten = "127.0.0.1:0"\nmetrics = "127.0.0.1:0"\nrpc_urls = ["${chain.url.href}"]\npoll_seconds = ${POLL_SECONDS}\n`,
  );
  await using deploys = await startProcess([join(ROOT, 'deploys/main.ts'), '--config', config], folder.path);
  const store = opened(join(folder.path, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
  const headers = { 'x-token': addKey(store, null) };
  store.close();

  const before = await answerWhen(deploys.url, headers, ({ programs }) => programs.every(isTimed));
  expect(before.programs).toHaveLength(115);
  expect(new Set(before.programs.map(({ status }) => status)).size).toBe(4);
  const last = before.programs.findLast(({ status }) => status === 'upgradeable');
  const programId = last?.program_id ?? '';

  const { signal } = new AbortController();
  const upgraded = await upgradeProgram({ rpcUrl: chain.url.href, programId, clock: systemClock, signal });
  if (upgraded.kind !== 'upgraded') throw new Error(JSON.stringify(upgraded));
  expect(upgraded.previousSlot).toBe(BigInt(last?.deploy_slot ?? 0));

  const after = await answerWhen(
    deploys.url,
    headers,
    ({ programs: [first] }) => first?.program_id === programId && isTimed(first),
  );
  expect(after.programs[0]?.deploy_slot).toBe(Number(upgraded.deploySlot));
  expect(after.programs[0]?.upgrade_authority).toBe(last?.upgrade_authority ?? null);
  expect(Date.parse(after.checked_at)).toBeGreaterThan(Date.parse(before.checked_at));
}, 60_000);

function isTimed({ deploy_slot, deployed_at }: ProgramsAnswer['programs'][number]): boolean {
  return (deploy_slot === null) === (deployed_at === null);
}

/** Asks until the answer is as wanted; the test's own timeout bounds it. */
async function answerWhen(
  url: URL,
  headers: Record<string, string>,
  isWanted: (answer: ProgramsAnswer) => boolean,
): Promise<ProgramsAnswer> {
  for (;;) {
    const response = await fetch(new URL(PROGRAMS_PATH, url), { headers });
    if (response.status !== 503) {
      const answer = (await response.json()) as ProgramsAnswer; // held to the schema in test/contract
      if (response.status !== 200) throw new Error(`${response.status}: ${JSON.stringify(answer)}`);
      if (isWanted(answer)) return answer;
    }
    await Bun.sleep((1_000 * POLL_SECONDS) / 2); // between two questions, within the key's 60 a minute
  }
}
