import { afterAll, beforeAll, expect, test } from 'bun:test';
import { join } from 'node:path';
import { findMismatches } from '../../../deploys/usage/tend.ts';
import { LEDGER_FILE, LEDGER_MIGRATIONS } from '../../../gateway/ledger.ts';
import { systemClock } from '../../../shared/clock.ts';
import { startBackend } from '../../fakes/backend.ts';
import { startCrew } from '../../faults/gateway-crew.ts';
import { opened } from '../../started/gateway.ts';

const PLANS = '[plans.prepaid]\nrps = 100000\nburst = 100000\ncredits = 100000\n';
const REQUESTS = 120;

let backend: ReturnType<typeof startBackend>;
beforeAll(() => void (backend = startBackend()));
afterAll(() => backend[Symbol.asyncDispose]());

const start = () => startCrew({ backendUrl: backend.url, processes: 3, extra: PLANS });
type Crew = Awaited<ReturnType<typeof start>>;

/** Sends requests of both keys on connections of their own; gives how many were answered. */
async function load(crew: Crew, keys: readonly string[]): Promise<number> {
  let answered = 0;
  const ask = async (i: number) => {
    const answer = await crew.post(keys[i % keys.length] ?? '').catch(() => undefined);
    if (answer?.ok === true && (await answer.text()) !== '') answered++;
  };
  for (let i = 0; i < REQUESTS; i += 12) await Promise.all(Array.from({ length: 12 }, (_, k) => ask(i + k)));
  return answered;
}

async function stopped(crew: Crew) {
  crew.kill('SIGTERM');
  await crew.exited;
  using ledger = opened(join(crew.folder, LEDGER_FILE), LEDGER_MIGRATIONS);
  const sums = ledger
    .query<{ nodes: number; calls: number; credits: number }, []>(
      'SELECT count(DISTINCT node) AS nodes, sum(calls) AS calls, sum(credits - refunded) AS credits FROM usage_hours',
    )
    .get();
  const mismatches = await findMismatches(ledger, systemClock, new AbortController().signal);
  return { ...sums, mismatches };
}

test('what several processes counted adds up to what was answered', async () => {
  await using crew = await start();
  const answered = await load(crew, [crew.key('prepaid', 1_000), crew.key('scale')]);
  expect(answered).toBe(REQUESTS);
  const { nodes, ...sums } = await stopped(crew);
  expect(sums).toEqual({ calls: REQUESTS, credits: REQUESTS, mismatches: [] });
  expect(nodes).toBeGreaterThan(1);
}, 20_000);
