import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSolanaRpc, lamports } from '@solana/kit';
import { ROOT, startProcess } from '../started/process.ts';
import { bob } from './harness.ts';

const MAIN = join(ROOT, 'localnet/main.ts');
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'localnet-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A config for a localnet of its own; gives its path. */
function configured(name: string, listen = '127.0.0.1:0'): string {
  const path = join(folder, `${name}.toml`);
  const dataDir = join(folder, name);
  writeFileSync(
    path,
    `[storage]\ndata_dir = "${dataDir}"\n[localnet]\nlisten = "${listen}"\nslot_ms = 50\nrooted_lag = 4\n`,
  );
  return path;
}

describe('the localnet as a process', () => {
  test('moves by itself, and a transaction that was answered survives a kill', async () => {
    const config = configured('killed');
    const processed = { commitment: 'processed' } as const;
    const first = await startProcess([MAIN, '--config', config], folder);
    const rpc = createSolanaRpc(first.url.href);
    const genesis = await rpc.getGenesisHash().send();
    for (let number = 1n; number <= 5n; number += 1n) {
      await rpc.requestAirdrop(bob.address, lamports(number * 1_000_000n)).send();
    }
    const slot = await rpc.getSlot(processed).send();
    first.kill('SIGKILL');
    await first.exited;

    await using second = await startProcess([MAIN, '--config', config], folder);
    const again = createSolanaRpc(second.url.href);
    expect(await again.getGenesisHash().send()).toBe(genesis);
    expect(await again.getSlot(processed).send()).toBeGreaterThan(slot);
    expect((await again.getBalance(bob.address).send()).value).toBe(lamports(15_000_000n));
    expect(await again.getSignaturesForAddress(bob.address).send()).toHaveLength(5);
    let later = await again.getSlot(processed).send();
    const deadline = AbortSignal.timeout(5_000);
    for (const start = later; later === start; later = await again.getSlot(processed).send())
      deadline.throwIfAborted();
  });
});
