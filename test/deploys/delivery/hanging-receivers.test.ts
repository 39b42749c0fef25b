import { expect, test } from 'bun:test';
import { START_MS } from '../../fakes/chain-clock.ts';
import { answered } from '../../fakes/scripted-send.ts';
import { startWorker } from './working.ts';

/** What a receiver that does well takes to answer; attempts are watched for less than the 10 s of one that hangs. */
const [ANSWER_MS, WATCHED_MS] = [200, 4_000];
const never = new AbortController().signal;

type World = Readonly<{ hanging: number; healthy: number; accountOf(n: number): number }>;

/** A worker that sends to a host for each webhook, the first `hanging` of which never answer. */
function startWorld({ hanging, healthy, accountOf }: World) {
  /** When the attempts at healthy receivers came. */
  const begins: number[] = [];
  const work = startWorker(({ post, end }) => {
    if (post.url.hostname.startsWith('hung')) return undefined;
    begins.push(work.clock.monotonic());
    void work.clock.sleep(ANSWER_MS, never).then(() => end(answered(200)));
    return undefined;
  });
  for (let n = 0; n < hanging + healthy; n++)
    work.addWebhook(`${n < hanging ? 'hung' : 'well'} ${n}`, { account: accountOf(n) });
  let slot = 0;
  return {
    ...work,
    async expectWithinBars(upgrades: number) {
      const fromMs = work.clock.monotonic();
      begins.length = 0;
      for (let i = 0; i < upgrades; i++) work.upgradeNow('A', ++slot);
      await work.advance(WATCHED_MS);
      expect(begins).toHaveLength(upgrades * healthy);
      const took = begins.map((atMs) => atMs - fromMs).toSorted((a, b) => a - b);
      expect(took[Math.floor(took.length / 2)]).toBeLessThan(1_000);
      expect(took.at(-1)).toBeLessThan(2_000);
    },
  };
}

test.each([
  ['are new', null],
  ['succeeded an hour ago', START_MS - 3_600_000],
  ['succeeded a moment ago', START_MS],
])(
  '80 of 100 receivers that %s and begin to hang delay no attempt at the others (E27, E35)',
  async (_, atMs) => {
    await using world = startWorld({ hanging: 80, healthy: 20, accountOf: () => 1 });
    world.store.run('UPDATE webhooks SET last_success_at_ms = ?', [atMs]);
    // The second time the attempts of the first still hang.
    for (const upgrades of [5, 5]) await world.expectWithinBars(upgrades);
  },
);

test('M18 240 of 300 receivers that begin to hang delay no attempt at the others (E35)', async () => {
  await using world = startWorld({ hanging: 240, healthy: 60, accountOf: (n) => 1 + (n % 5) });
  await world.expectWithinBars(5);
});
