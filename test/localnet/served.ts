import { address } from '@solana/kit';
import { createLocalnet } from '../../localnet/compose.ts';
import { systemClock } from '../../shared/clock.ts';

/** A running localnet on a port of its own, with short slots. */
export async function startServed(programs: readonly Readonly<{ program_id: string }>[] = []) {
  const faults: unknown[] = [];
  const localnet = await createLocalnet({
    programs: programs.map(({ program_id: id }) => address(id)),
    accounts: [],
    dataDir: undefined,
    slotMs: 20,
    rootedLag: 3,
    clock: systemClock,
    random: (bytes) => crypto.getRandomValues(new Uint8Array(bytes)),
  });
  const server = localnet.serve({
    hostname: '127.0.0.1',
    port: 0,
    onFault: (cause) => faults.push(cause),
  });
  const stop = new AbortController();
  const running = localnet.run(stop.signal);
  return {
    url: server.url,
    chain: localnet.chain,
    faults,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await running;
      await server.stop(true);
      localnet.close();
    },
  };
}
